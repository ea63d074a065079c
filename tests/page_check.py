"""Looks at the page of a plan in Chromium: errors, requests, accessibility, figures, pictures.

`make page-test` runs it in an environment with Playwright: `python tests/page_check.py AXE FOLDER
PAGE...`, AXE being axe.min.js of axe-core. Exit 1 where anything is wrong; pictures go to FOLDER.
"""

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
SLOWEST_MS = 300_000  # the picture of 400 jobs is as tall as all of their rows
LOOKS = tuple((scheme, width) for width in (390, 768, 1280, 1440) for scheme in ("light", "dark"))
_SETTINGS = """() => {
  const before = document.getElementById("answer").textContent;
  const hours = document.getElementById("hours");
  hours.value = 50; hours.dispatchEvent(new Event("input"));
  const after = document.getElementById("answer").textContent;
  return [before, after, location.hash];
}"""


def looked_at(browser: Browser, page_path: Path, axe: str, folder: Path) -> list[str]:
    """Return what is wrong with a page, at every look of it."""
    wrong: list[str] = []
    for scheme, width in LOOKS:
        size: Any = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)
        context.set_default_timeout(SLOWEST_MS)
        name = f"{page_path.stem}-{scheme}-{width}"
        found = _look(context.new_page(), page_path, axe, folder / f"{name}.png")
        wrong += [f"{name}: {one}" for one in found]
        context.close()
    return wrong


def _look(page: Page, page_path: Path, axe: str, picture: Path) -> list[str]:
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", lambda asked: _is_own(asked.url) or wrong.append(f"asks {asked.url}"))
    page.goto(page_path.resolve().as_uri())
    page.screenshot(path=str(picture), full_page=True)
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    if wider > 0:
        wrong.append(f"the page is {wider} px wider than the screen")
    page.evaluate(axe)
    violations: Any = page.evaluate("axe.run()")["violations"]
    wrong += [f"axe: {one['id']}: {one['nodes'][0]['html'][:120]}" for one in violations]
    before, after, state = page.evaluate(_SETTINGS)
    if before == after or "hours=50" not in state:
        wrong.append(f"half the hours change nothing: {after}")
    return wrong + _jobs(page) + _map(page)


def _jobs(page: Page) -> list[str]:
    """Sort and search the table of jobs by keyboard."""
    if not page.locator("#jobs").count():
        return []
    wrong: list[str] = []
    page.locator("#jobs th button").nth(1).focus()
    page.keyboard.press("Enter")
    if page.locator("#jobs th[aria-sort]").count() != 1:
        wrong.append("a sorted table does not say by what")
    page.fill("#find", "no job is called so")
    if page.locator("#jobs tbody tr:visible").count():
        wrong.append("searching the jobs hides none")
    page.fill("#find", "")
    return wrong


def _map(page: Page) -> list[str]:
    """Leave every provider out: who moved to share is greyed and named; what stays is not."""
    if not any(group["needs"]["provider"] for group in _data(page)["table"]["groups"]):
        return []
    for box in page.locator('input[name="provider"]').all():
        box.uncheck()
    greyed = page.locator(".gpu.off").count()
    named = page.locator("#map-said").inner_text()
    return [] if greyed and named else [f"{greyed} greyed, said: {named}"]


def _data(page: Page) -> Any:
    return page.evaluate('JSON.parse(document.getElementById("data").textContent)')


def _is_own(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))


def printed(browser: Browser, page_path: Path, folder: Path) -> None:
    """Write the page as it is printed."""
    page = browser.new_page()
    page.goto(page_path.resolve().as_uri())
    page.emulate_media(media="print")
    page.pdf(path=str(folder / f"{page_path.stem}.pdf"), format="A4")
    page.screenshot(path=str(folder / f"{page_path.stem}-printed.png"), full_page=True)
    page.close()


def main(axe_path: str, folder: str, *pages: str) -> int:
    """Look at every page; print what is wrong and return the exit code."""
    axe, target = Path(axe_path).read_text(encoding="utf-8"), Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        wrong = [one for page in pages for one in looked_at(browser, Path(page), axe, target)]
        for page in pages:
            printed(browser, Path(page), target)
        browser.close()
    sys.stdout.write("\n".join([*wrong, f"{len(pages)} pages, {len(wrong)} things wrong"]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
