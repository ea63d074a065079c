"""The probe of gpucost, in the process of the program that is measured.

It waits until the program imports PyTorch or Keras (it never imports them itself), changes a
handful of their functions so that they tell when a batch is fetched, an optimizer steps, a
checkpoint is saved, and writes that as JSON lines into the folder named by GPUCOST_PROBE_DIR:

    reached            one line with the process id of each interpreter that started with the probe
    PID-START.jsonl    the events of one process; made when the first event happens

An error of the probe never reaches the program: the hook that failed goes silent and says so in an
`odd` event. Without a disk to write to, the probe goes silent altogether.

Tried with PyTorch 2.13 on CPU. What concerns CUDA (copies, memory) was tried with a stand-in for
the calls of torch.cuda that it makes; nothing here waits for a GPU.
"""

import os

VERSION = 1


def start(folder: str) -> None:
    """Note that this interpreter was reached, and wait for PyTorch and Keras to be imported."""
    from . import import_hook

    _note_reached(folder)
    import_hook.install(folder)


def _note_reached(folder: str) -> None:
    """Append the process id to the file `reached`; one write, so that lines do not mix."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(os.path.join(folder, "reached"), flags, 0o666)
    except OSError:
        return
    try:
        os.write(file, b"%d\n" % os.getpid())
    except OSError:
        pass
    finally:
        os.close(file)
