"""Why a job wastes what it wastes: the rule tables, and how they are applied."""
