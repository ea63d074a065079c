"""Say: reports from plan.json, tasks for other tools, scripts that set machines up and end them.

`report_text` makes the sentences of a report, `render` fills its template. `bootstrap_files` fills
the scripts in `bootstrap/`; `bootstrap_deadline` says what watches the deadline on a machine.
"""
