"""Applies the settings of a recipe in the program's own process, where it is safe or asked for.

What to apply lies in the file `apply.json` of the folder of events; without that file nothing in
here is imported. What the program set itself stays as it is. Each setting ends as an event
`change`: applied, or left and why.
"""
