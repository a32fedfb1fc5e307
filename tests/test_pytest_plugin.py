from __future__ import annotations

import pytest

LOG = """\
INFO 03-01 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.9.2) with config: model='m', max_seq_len=4096
INFO 03-01 10:00:09 [gpu_worker.py:227] Available KV cache memory: 4.37 GiB
INFO 03-01 10:00:09 [kv_cache_utils.py:715] GPU KV cache size: 63,584 tokens
INFO 03-01 10:00:09 [kv_cache_utils.py:719] Maximum concurrency for 4,096 tokens per request: 15.52x
INFO 03-01 10:00:19 [core.py:171] init engine (profile, create kv cache, warmup model) took 12.00 seconds
"""


def test_a_promise_that_is_kept_passes(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("serve.log").write_text(LOG)
    pytester.makepyfile(
        """
        def test_log(vlogcheck):
            report = vlogcheck.assert_serves("serve.log", concurrency=15, context=4096)
            assert report.startups[0].version == "0.9.2"
            assert vlogcheck.records("serve.log")[1]["gib"] == 4.37
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_failure_message_is_the_report(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("serve.log").write_text(LOG)
    pytester.makepyfile(
        """
        from vlogcheck.pytest_plugin import assert_serves

        def test_log(vlogcheck):
            vlogcheck.assert_serves("serve.log", concurrency=16, context=4096)

        def test_function():
            assert_serves("serve.log", concurrency=16, context=4096)
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*VL401*", "*serve.log:4*", "*remedy*"])


def test_silence_is_no_evidence(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("serve.log").write_text("hello\n")
    pytester.makepyfile(
        """
        def test_log(vlogcheck):
            vlogcheck.assert_serves("serve.log")
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*inconclusive*"])


def test_a_log_that_is_missing_fails_in_one_line(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("serve.log").write_text(LOG)
    pytester.makepyfile(
        """
        def test_log(vlogcheck):
            vlogcheck.assert_serves("none.log", concurrency=16)

        def test_every_expectation(vlogcheck):
            vlogcheck.assert_serves("serve.log", tokens=63584, total_memory="80GiB", gpu_memory_utilization=0.9)
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["the log cannot be read: none.log: no such file"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")
