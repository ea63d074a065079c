"""The life of a run: launch, wait, end, reap; what of it is kept lies in `providers.journal`.

Three things end a machine. Itself, at its deadline, with nobody there: `templates/bootstrap`. The
user: `gpucost down` (`gpucost.machines.ending`), a failed launch, or what `gpucost reap` and
`watch` find past its deadline (`reap` here); all of them through `end.end_run`, which asks the
provider's `Cloud.destroy` until `presence` proves that each is gone. The provider: spot, or a
balance at zero.
"""
