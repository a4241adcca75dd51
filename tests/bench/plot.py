"""What was measured, as a picture: processor time per token, a bar for each frontend."""

from html import escape
from typing import Any, Final

COLOURS: Final = ("#2b6cb0", "#c05621", "#a0aec0", "#2f855a")
LEFT, BAR, GAP, TEXT, WIDTH = 150, 13, 12, 12, 760


def svg(measured: dict[str, Any]) -> str:
    """Of what `Report.as_json` gives, as plain JSON has it. The first two frontends set the scale; bars that are longer
    end at its edge, with their figure."""
    workloads: dict[str, dict[str, Any]] = measured["workloads"]
    names = list(measured["idle"])
    costs = {
        workload: {name: frontends[name]["medians"]["cpu_us_per_token"] or 0.0 for name in frontends}
        for workload, frontends in workloads.items()
    }
    scale = (WIDTH - LEFT - 60) / _edge(costs, names)
    rows, top = [_legend(names)], 40
    for workload, by_name in costs.items():
        rows.append(_text(LEFT - 8, top + TEXT, workload, "end"))
        for name, cost in by_name.items():
            length = min(cost * scale, WIDTH - LEFT - 60)
            colour = COLOURS[names.index(name) % len(COLOURS)]
            rows.append(f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR - 2}" fill="{colour}"/>')
            rows.append(_text(LEFT + length + 4, top + BAR - 3, f"{cost:.0f}"))
            top += BAR
        top += GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif"'
    head += f' font-size="{TEXT}">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{top}" fill="white"/>', *rows, "</svg>"]) + "\n"


def _edge(costs: dict[str, dict[str, float]], names: list[str]) -> float:
    return max(by_name.get(name, 0.0) for by_name in costs.values() for name in names[:2]) or 1.0


def _legend(names: list[str]) -> str:
    marks = []
    for index, name in enumerate(names):
        x = LEFT + 130 * index
        marks.append(f'<rect x="{x}" y="10" width="{BAR}" height="{BAR}" fill="{COLOURS[index % len(COLOURS)]}"/>')
        marks.append(_text(x + BAR + 6, 10 + TEXT, name))
    marks.append(_text(LEFT - 8, 10 + TEXT, "CPU us per token", "end"))
    return "\n".join(marks)


def _text(x: float, y: float, content: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(content)}</text>'
