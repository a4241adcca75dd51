"""script/bench as it is run, in small: Northbound alone, with the client of our own."""

import json
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.bench.frontends import ROOT
from tests.bench.load import Answer, summary
from tests.bench.measure import Run, medians
from tests.bench.plot import svg

WORKLOADS = ["chat", "completions-5-ids", "short", "beside-scored-prompt", "beside-large-prompts"]
SIZES = "--streams 4 --requests 2 --prompt 8 --answer 16 --scored-prompt 40 --long-prompt 80 --step-ms 2 --repeats 2"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What is printed, and what is in the file."""
    file = tmp_path_factory.mktemp("bench") / "figures.json"
    command = [sys.executable, "script/bench.py", "--workloads", ",".join(WORKLOADS), *SIZES.split()]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*command, "--client", "own", "--holds", "--json", str(file)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text())


def test_every_token_is_counted_and_costs_something(measured: tuple[str, dict[str, Any]]) -> None:
    _, figures = measured
    assert list(figures["workloads"]) == WORKLOADS
    for name, frontends in figures["workloads"].items():
        runs = frontends["northbound"]["runs"]
        assert len(runs) == 2
        for run in runs:
            assert run["tokens"] == (8 * 8 * 4 if name == "short" else 8 * 16)
            assert run["failures"] == 0
            assert run["tokens_per_s"] > 0
            assert 1 < run["cpu_us_per_token"] < 100_000
            assert 0 <= run["itl_ms_p50"] <= run["itl_ms_p99"] > 0
            assert 0 < run["ttft_ms_p50"] <= run["ttft_ms_p99"]
            assert 0 < run["engine_busy"] < 2
            assert 0 <= run["longest_hold_ms"] < 10_000


def test_medians_and_the_ratio(measured: tuple[str, dict[str, Any]]) -> None:
    _, figures = measured
    of_chat = figures["workloads"]["chat"]["northbound"]
    costs = [run["cpu_us_per_token"] for run in of_chat["runs"]]
    assert of_chat["medians"]["cpu_us_per_token"] == pytest.approx(sum(costs) / 2)
    assert of_chat["cpu_ratio_of_ours"] == 1


def test_idle(measured: tuple[str, dict[str, Any]]) -> None:
    _, figures = measured
    idle = figures["idle"]["northbound"]
    assert 0 < idle["health_s"] < 60
    assert 20 < idle["pss_mb"] <= idle["rss_mb"] < 1000


def test_a_line_for_each(measured: tuple[str, dict[str, Any]]) -> None:
    printed, figures = measured
    for name in WORKLOADS:
        cost = figures["workloads"][name]["northbound"]["medians"]["cpu_us_per_token"]
        [line] = [line for line in printed.splitlines() if line.startswith(f"{name} ")]
        assert f" {cost:.1f} " in line


HEAD = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
CHUNK = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
END = b'data: {"choices":[],"usage":{"completion_tokens":3}}\n\ndata: [DONE]\n\n'


def test_times_are_those_of_chunks_with_tokens() -> None:
    parts = [(1.1, HEAD), (1.2, CHUNK[:20]), (1.5, CHUNK[20:] + CHUNK), (2.0, CHUNK + END)]
    load = summary([Answer(1.0, 200, parts, True)], 1.0)
    assert load.ttft_ms_p50 == pytest.approx(500)
    assert load.itl_ms_p50 == pytest.approx(0)
    assert load.itl_ms_p99 == pytest.approx(500)
    assert (load.tokens, load.failures) == (3, 0)


def test_what_is_refused_or_breaks_off_fails() -> None:
    answers = [Answer(1.0, 200, [(1.1, CHUNK)]), Answer(1.0, 400, [(1.1, b'{"error":{}}')], True), Answer(1.0)]
    load = summary(answers, 1.0, failures=1)
    assert (load.tokens, load.failures) == (0, 4)


def test_medians_pass_over_what_is_missing() -> None:
    def run(cost: float | None, failures: int) -> Run:
        return Run(
            tokens_per_s=1.0,
            cpu_us_per_token=cost,
            ttft_ms_p50=None,
            ttft_ms_p99=None,
            itl_ms_p50=None,
            itl_ms_p99=None,
            failures=failures,
            tokens=1,
            engine_busy=0.0,
            longest_hold_ms=None,
        )

    middle = medians([run(10.0, 0), run(None, 7), run(30.0, 0)])
    assert middle["cpu_us_per_token"] == 20.0
    assert middle["failures"] == 7
    assert middle["ttft_ms_p50"] is None


def test_the_picture_has_a_bar_for_each_frontend_and_its_figure() -> None:
    costs = {"chat": {"ours": 20.4, "its": 40.0, "third": 400.0}, "short": {"ours": 80.0, "its": 100.0}}
    drawn = svg(
        {
            "idle": dict.fromkeys(["ours", "its", "third"]),
            "workloads": {
                workload: {name: {"medians": {"cpu_us_per_token": cost}} for name, cost in by_name.items()}
                for workload, by_name in costs.items()
            },
        }
    )

    picture = ElementTree.fromstring(drawn)  # noqa: S314 - it is our own
    shapes = list(picture.iter("{http://www.w3.org/2000/svg}rect"))
    lengths = [
        float(shape.attrib["width"]) for shape in shapes if shape.attrib.get("x") == "150" and shape.attrib["y"] != "10"
    ]
    assert lengths == pytest.approx([112.2, 220, 550, 440, 550])
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["ours", "its", "third", "CPU us per token", "chat", "20", "40", "400", "short", "80", "100"]
