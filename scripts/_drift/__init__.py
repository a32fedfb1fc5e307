"""Read the messages a vLLM release can print out of its source and hold vlogcheck's templates against them.

`pieces` is the algebra of message texts, `scope` interprets one function body, `collect` walks a release, `sources`
finds its files, `match` aligns templates with what was collected, `report` prints it.
"""
