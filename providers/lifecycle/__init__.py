"""The life of a run: launch, wait, end, reap; what of it is kept lies in `providers.journal`.

What ends a machine:

- itself, with nobody there: `templates/bootstrap`, at its deadline, or where its bootstrap failed;
- a schedule at the provider, where one was asked for (`providers.aws.schedule`);
- the user, `gpucost down`: `gpucost.machines.ending`;
- a launch that fails (`launch`), and what `gpucost reap` and `watch` find past its deadline or
  belonging to no run (`reap`);
- `duplicates`: the second machine of one name, which a repeated call made;
- the provider: spot, or a balance at zero.

All that goes out from here asks `Cloud.destroy` until `presence` proves that each is gone; `end` is
where a run ends.
"""
