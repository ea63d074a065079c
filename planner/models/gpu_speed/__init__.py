"""How fast a GPU is for a job: by benchmarks of its kind, or by class of work and specifications.

`work_class` says which law holds for a profile: `fitted_speed` for training on one GPU,
`speed_laws` for every other class. `gpu_family` and `arithmetic` say what the laws ask of a GPU.
"""
