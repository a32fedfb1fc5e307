"""Read the messages a vLLM release can print out of its source and hold vlogcheck's templates against them.

`pieces` is the algebra of message texts, `scope` evaluates expressions, `walk` goes through bodies, `collect` reads one
file, `sources` finds a release's files, `cache` keeps what was collected, `match` aligns templates with messages,
`compare` puts all together with the `ignore` list, `report` prints it.
"""
