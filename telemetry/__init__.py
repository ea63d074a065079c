"""What GPUs reported: read from the files people already have, or measured beside a command.

`sources` is the door: it opens a source, recognizes it by content (`formats.sniff`), has the module
of its format read it into a `Recording` with what `readers` offers, and `profiling` says which rows
belong to which job and builds its profile. `measure` makes recordings of its own. Adding a
format: an entry in `formats/formats.toml`, its columns in `readers/columns.toml`, and a function
`(builder, hints) -> Recording` in `formats/`.

Importing `sources` and reading a `profile.json` needs neither pandas nor numpy.
"""
