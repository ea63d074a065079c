"""Say: reports from plan.json, tasks for other tools, scripts that set machines up and end them.

`report_text` makes the sentences of a report, `render` fills its template. `bootstrap_files` fills
the scripts in `bootstrap/`; `bootstrap_deadline` says what watches the deadline on a machine.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def templates_in(
    folder: str, *, autoescape: bool = False, are_shell: bool = False
) -> "Environment":
    """Return what fills the templates of a folder here; a value that they lack is an error.

    Args:
        folder: such as "reports".
        autoescape: whether values are escaped, as HTML needs it; elsewhere filters of the folder
            keep a value from being more than text.
        are_shell: whether the shell's ${#name} must not begin a comment of theirs.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - heavy

    return Environment(
        loader=PackageLoader("templates", folder),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not autoescape,
        comment_start_string="{##" if are_shell else "{#",
        undefined=StrictUndefined,
        autoescape=autoescape,  # noqa: S701 - as the folder needs it
    )
