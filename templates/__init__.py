"""Say: reports from plan.json. `wording` makes the sentences, `render` fills the templates."""
