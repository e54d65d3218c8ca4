"""Pictures as SVG, for notebooks: the tree of a network, stacked bars of terms, curves over sizes. Plain text, no library."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ._tables import count, escaped, seconds

Point = Tuple[float, float]

#: colour and words of each term
TERMS = {
    "alpha": ("#4e79a7", "latency"),
    "beta": ("#f28e2b", "link time"),
    "gamma": ("#59a14f", "adding"),
    "delta": ("#76b7b2", "memory access"),
    "epsilon": ("#e15759", "incast"),
    "mu": ("#b07aa1", "handling messages"),
}
LINES = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#9c755f", "#bab0ac", "#edc948", "#ff9da7")


def document(width: float, height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12" role="img">'
        f"<title>{escaped(title)}</title>" + "".join(parts) + "</svg>"
    )


def text(x: float, y: float, words: str, anchor: str = "start", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"{extra}>{escaped(words)}</text>'


def figure(svg: str, table: str) -> str:
    return f"<div>{svg}{table}</div>"


def bars(title: str, rows: Sequence[Tuple[str, Mapping[str, float]]], bound: Optional[float] = None) -> str:
    """A stacked bar for each row, to one scale; `bound` is a line that nothing can be left of."""
    left, width, step = 150.0, 520.0, 24.0
    most = max([sum(terms.values()) for _, terms in rows] + [bound or 0.0]) or 1.0
    parts = [text(8, 18, title, extra=' font-weight="bold"')]
    y = 34.0
    for name, terms in rows:
        parts.append(text(left - 8, y + 13, name, "end"))
        x = left
        for term, (colour, words) in TERMS.items():
            part = terms.get(term, 0.0) / most * width
            if part <= 0:
                continue
            parts.append(
                f'<rect x="{x:.2f}" y="{y:.1f}" width="{part:.2f}" height="18" fill="{colour}">'
                f"<title>{escaped(name)}: {words} ({term}) {seconds(terms[term])}</title></rect>"
            )
            x += part
        parts.append(text(x + 6, y + 13, seconds(sum(terms.values()))))
        y += step
    if bound:
        x = left + bound / most * width
        parts.append(
            f'<line x1="{x:.2f}" x2="{x:.2f}" y1="28" y2="{y:.1f}" stroke="currentColor" stroke-dasharray="4 3">'
            f"<title>lower bound {seconds(bound)}</title></line>"
        )
    x = left
    for term, (colour, words) in TERMS.items():
        if any(terms.get(term, 0.0) > 0 for _, terms in rows):
            parts.append(f'<rect x="{x:.1f}" y="{y + 6:.1f}" width="10" height="10" fill="{colour}"/>')
            parts.append(text(x + 14, y + 15, words))
            x += 22 + 6.6 * len(words)
    return document(left + width + 80, y + 26, parts, title)


class Axis:
    """Values on a logarithmic scale, as places between `begin` and `end`."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.low = math.log10(min(values))
        self.high = math.log10(max(values))
        if self.high - self.low < 1e-9:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> List[float]:
        step = max(1, math.ceil((self.high - self.low) / 8))
        return [10.0**power for power in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1, step)]


def curves(title: str, series: Mapping[str, Sequence[Point]], x_words: str) -> str:
    """Lines over sizes, both axes logarithmic; what is not above 0 has no place there and is left out."""
    lines: Dict[str, List[Point]] = {}
    for name, points in series.items():
        shown = [(x, y) for x, y in points if x > 0 and y > 0]
        if shown:
            lines[name] = shown
    width, height, left, bottom = 720.0, 380.0, 70.0, 330.0
    parts = [text(8, 18, title, extra=' font-weight="bold"')]
    if not lines:
        return document(width, 60, [*parts, text(8, 44, "nothing to draw")], title)
    x_axis = Axis([x for points in lines.values() for x, _ in points], left, width - 170)
    y_axis = Axis([y for points in lines.values() for _, y in points], bottom, 36)
    frame = f'<path d="M{left},36 V{bottom} H{width - 170}" fill="none" stroke="currentColor"/>'
    parts.append(frame)
    for value in x_axis.ticks():
        parts.append(text(x_axis(value), bottom + 18, count(value), "middle"))
    for value in y_axis.ticks():
        y = y_axis(value)
        parts.append(f'<path d="M{left},{y:.1f} H{width - 170}" stroke="currentColor" stroke-opacity="0.15"/>')
        parts.append(text(left - 6, y + 4, seconds(value), "end"))
    parts.append(text((left + width - 170) / 2, bottom + 38, x_words, "middle"))
    for i, (name, points) in enumerate(lines.items()):
        colour = LINES[i % len(LINES)]
        way = " L".join(f"{x_axis(x):.1f},{y_axis(y):.1f}" for x, y in sorted(points))
        parts.append(f'<path d="M{way}" fill="none" stroke="{colour}" stroke-width="2"><title>{escaped(name)}</title></path>')
        parts.append(f'<rect x="{width - 158}" y="{40 + 18 * i}" width="12" height="4" fill="{colour}"/>')
        parts.append(text(width - 140, 46 + 18 * i, name))
    return document(width, max(height, 60 + 18 * len(lines)), parts, title)


class Tree:
    """Places for the nodes of a network: each run of equal subtrees is drawn once, with how many there are."""

    gap_x, gap_y = 92.0, 78.0
    most_boxes = 60

    def __init__(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        self.nodes = nodes
        self.parts: List[str] = []
        self.next_x = 0.0
        self.depth = 0
        self.num_boxes = 0

    def draw(self, node: int, times: int, depth: int) -> float:
        """Draws a subtree and returns where its root is."""
        this = self.nodes[node]
        self.depth = max(self.depth, depth)
        self.num_boxes += 1
        places = []
        runs = this.get("children", [])
        for i, run in enumerate(runs):
            if self.num_boxes >= self.most_boxes:
                places.append((self.leaf(), None, len(runs) - i))
                break
            places.append((self.draw(run["node"], run["count"], depth + 1), run, 0))
        x = sum(place for place, _, _ in places) / len(places) if places else self.leaf()
        y = 44 + depth * self.gap_y
        for place, run, left_out in places:
            below = y + self.gap_y
            self.parts.insert(0, f'<path d="M{x:.1f},{y:.1f} L{place:.1f},{below:.1f}" stroke="currentColor" stroke-opacity="0.5"/>')
            if run is None:
                self.parts.append(text(place, below + 4, f"and {left_out} more", "middle"))
                self.depth = max(self.depth, depth + 1)
        self.parts.append(self.box(this, times, x, y))
        return x

    def leaf(self) -> float:
        self.next_x += self.gap_x
        return self.next_x - self.gap_x / 2

    def box(self, node: Mapping[str, Any], times: int, x: float, y: float) -> str:
        is_server = node["kind"] == "server"
        name = node["name"] if times == 1 else f"{times} x {node['name']}"
        about = [f"{name}: {node['num_servers']} server{'s' if node['num_servers'] != 1 else ''}", f"alpha {seconds(node['alpha'])}"]
        if node.get("bits_per_s"):
            about.append(f"uplink {node['bits_per_s'] / 1e9:.4g} Gbit/s")
        colour = "#76b7b2" if is_server else "#4e79a7"
        radius = 10 if is_server else 3
        out = (
            f'<g><rect x="{x - 10:.1f}" y="{y - 10:.1f}" width="20" height="20" rx="{radius}" fill="{colour}">'
            f"<title>{escaped(', '.join(about))}</title></rect>" + text(x, y + 26, name, "middle") + "</g>"
        )
        if node.get("bits_per_s"):
            out += text(x + 13, y - 12, f"{node['bits_per_s'] / 1e9:.3g}G", extra=' font-size="10" fill-opacity="0.7"')
        return out


def tree(topology: Mapping[str, Any]) -> str:
    """The network of a gar.topo/1 document."""
    drawn = Tree(topology["nodes"])
    drawn.draw(0, 1, 0)
    title = f"{topology['name']}: {topology['num_servers']} servers"
    parts = [text(8, 18, title, extra=' font-weight="bold"'), *drawn.parts]
    width = max(drawn.next_x, 16 + 7.5 * len(title))
    return document(width, 44 + drawn.depth * drawn.gap_y + 40, parts, title)
