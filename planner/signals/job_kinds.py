"""The groups of kinds of job that rules and actions look for; MAY_ takes unknown ones in."""

from planner.profile.kinds import kinds, ways

TRAINS = kinds(lambda kind: kind.trains)
MAY_TRAIN = kinds(lambda kind: kind.may_train, or_unknown=True)
WORKS = kinds(lambda kind: kind.has_fixed_work)
MAY_WORK = kinds(lambda kind: kind.has_fixed_work, or_unknown=True)
LEARNS = kinds(lambda kind: kind.has_fixed_work and not kind.serves, or_unknown=True)
SERVES = kinds(lambda kind: kind.serves)
MAY_SERVE = kinds(lambda kind: kind.serves, or_unknown=True)
ANSWERS = kinds(lambda kind: kind.answers)
MAY_ANSWER = kinds(lambda kind: kind.answers, or_unknown=True)
TOGETHER = ways(lambda way: way.works_together)
