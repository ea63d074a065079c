"""Say: reports from plan.json. `report_text` makes the sentences, `render` fills the templates."""
