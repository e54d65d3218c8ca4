#!/usr/bin/env python3
"""Pages of docs/*.md for scripts/docs.sh: docs_pages.py OUTPUT VERSION [NOTE...]

Writes OUTPUT/*.html, and fails where a link leads nowhere. A NOTE says what was left out.
"""
import html
import html.parser
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def page_of(document):
    """README.md -> index.html, fit.md -> fit.html"""
    return "index.html" if document == "README.md" else document.removesuffix(".md") + ".html"


def plain(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


class Slugs:
    """Ids of headings, as GitHub makes them."""

    def __init__(self):
        self.used = {}

    def of(self, heading):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        count = self.used.get(slug, -1) + 1
        self.used[slug] = count
        return slug if count == 0 else f"{slug}-{count}"


def with_ids(body):
    slugs = Slugs()

    def heading(found):
        level, inside = found.groups()
        slug = html.escape(slugs.of(plain(inside)))
        return f'<h{level} id="{slug}">{inside}</h{level}>'

    return re.sub(r"<h([1-6])>(.*?)</h\1>", heading, body, flags=re.DOTALL)


def with_links(body, document, problems):
    """Links to documents lead to their pages, those to other sources become text."""

    def link(found):
        target, inside = html.unescape(found.group(1)), found.group(2)
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return found.group(0)
        file = (DOCS / urllib.parse.unquote(path)).resolve()
        if not file.exists():
            problems.append(f"docs/{document}: {target}: there is no such file")
        if file.parent == DOCS and file.suffix == ".md":
            return f'<a href="{html.escape(page_of(file.name) + ("#" + anchor if anchor else ""))}">{inside}</a>'
        if file.is_relative_to(DOCS / "img"):
            return found.group(0)
        return inside

    return re.sub(r'<a href="([^"]*)">(.*?)</a>', link, body, flags=re.DOTALL)


def rendered(text):
    command = ["cmark-gfm", "-e", "table", "-e", "strikethrough", "-e", "autolink", "--to", "html"]
    body = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    # Tables whose titles are empty have none; in others an empty title is an empty cell.
    body = re.sub(r"<thead>\s*<tr>(\s*<th[^>]*></th>)+\s*</tr>\s*</thead>\n?", "", body)
    body = re.sub(r"<th( [^>]*)?></th>", "<td></td>", body)
    numbers = itertools.count(1)
    body = re.sub("<table>", lambda _: '<div class="scroll" tabindex="0" role="region" '
                  f'aria-label="table {next(numbers)}"><table>', body)
    body = body.replace("</table>", "</table></div>")
    return body.replace("<pre>", '<pre tabindex="0">')


def groups_of(readme):
    """The first table of docs/README.md: what to read for what."""
    groups = []
    for line in readme.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        links = re.findall(r"\[([^\]]*)\]\(([\w-]+\.md)\)", line)
        if line.startswith("|") and len(cells) == 2 and links:
            groups.append((cells[0], [(words, page_of(file)) for words, file in links]))
        elif groups:
            break
    return groups


def navigation_of(groups, current):
    out = []
    for title, links in groups:
        out.append(f"<h2>{html.escape(title)}</h2>\n<ul>")
        for words, page in links:
            here = ' aria-current="page"' if page == current else ""
            out.append(f'<li><a href="{html.escape(page)}"{here}>{html.escape(words)}</a></li>')
        out.append("</ul>")
    return "\n".join(out)


def made_pages(output):
    """What scripts/docs.sh has put there before, as a group of the navigation."""
    links = []
    if (output / "api/index.html").exists():
        links.append(("C++ and C reference", "api/index.html"))
    if (output / "gar.html").exists():
        links.append(("explorer page of a measured network", "gar.html"))
    links += [(f"report: {page.stem}", f"reports/{page.name}") for page in sorted(output.glob("reports/*.html"))]
    return links


def left_out(notes):
    if not notes:
        return ""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return f'<h2>Left out here</h2>\n<ul class="quiet">{items}</ul>\n'


def make(output, version, notes):
    documents = sorted(path.name for path in DOCS.glob("*.md"))
    template = (DOCS / "site/page.html").read_text()
    groups = groups_of((DOCS / "README.md").read_text())
    problems = [] if len(groups) > 3 else ["docs/README.md has no table of what to read"]
    listed = {page for _, links in groups for _, page in links} | {"index.html"}
    problems += [f"docs/README.md does not list {name}" for name in documents if page_of(name) not in listed]
    made = made_pages(output)
    if made:
        groups = groups + [("made for this page", made)]
    for name in documents:
        body = with_ids(with_links(rendered((DOCS / name).read_text()), name, problems))
        if name == "README.md":
            body += left_out(notes)
        title = re.search(r"<h1[^>]*>(.*?)</h1>", body, flags=re.DOTALL)
        fields = {"title": html.escape(plain(title.group(1))) if title else name, "version": html.escape(version),
                  "body": body, "navigation": navigation_of(groups, page_of(name))}
        page = re.sub(r"\{\{(\w+)\}\}", lambda found, of=fields: of[found.group(1)], template)
        (output / page_of(name)).write_text(page)
    shutil.copytree(DOCS / "img", output / "img", dirs_exist_ok=True)
    return problems


class Links(html.parser.HTMLParser):
    """Where a page leads to, and what in it can be led to."""

    def __init__(self):
        super().__init__()
        self.targets = []
        self.ids = set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value)
            elif value and (name == "src" or (name == "href" and tag in ("a", "link"))):
                self.targets.append(value)


def check(output):
    """Every page but those of Doxygen, which checks its own; links into these are checked, too."""
    known = {}

    def read(page):
        if page not in known:
            known[page] = Links()
            known[page].feed(page.read_text(errors="replace"))
        return known[page]

    problems = []
    pages = sorted(output.glob("*.html")) + sorted(output.glob("reports/*.html"))
    for page in pages:
        for target in read(page).targets:
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.is_file():
                problems.append(f"{page.relative_to(output)}: {target}: there is no such file")
            elif anchor and file.suffix == ".html" and anchor not in read(file).ids:
                problems.append(f"{page.relative_to(output)}: {target}: there is no such place on that page")
    return problems


def main():
    output = pathlib.Path(sys.argv[1]).resolve()
    problems = make(output, sys.argv[2], sys.argv[3:]) + check(output)
    for problem in problems:
        print(f"docs: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
