# SPDX-License-Identifier: GPL-2.0-only
"""A page in a real browser, headless Chromium, for the tests that look at one."""

import json
import os
import shutil

import pytest

from reports import BUILD, DEADLINE, PROFILE, report

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = ActionChains = By = Keys = WebDriverWait = None

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(not (webdriver and CHROMIUM and DRIVER),
                                reason="no Chromium with Selenium: tools/setup browser installs it")


class Page:
    """A report in the browser."""

    def __init__(self, driver):
        self.driver = driver
        self.driver.get_log("performance")
        self.driver.get_log("browser")

    def open(self, url, **media):
        features = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in media.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        self.driver.get(str(url))
        self.until(lambda: self.text("#range"), "a view")
        return self

    def js(self, script, *args):
        return self.driver.execute_script(script, *args)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).textContent", selector)

    def until(self, condition, what):
        return WebDriverWait(self.driver, DEADLINE, poll_frequency=0.05).until(lambda _: condition(), what)

    def scroll_to(self, selector):
        self.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)

    def column(self, table, title):
        """The texts of that column of a table, as shown."""
        return self.js("""
            const heads = [...document.querySelectorAll(`#${arguments[0]} thead th`)];
            const at = heads.findIndex(th => th.textContent === arguments[1]);
            return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map(tr => tr.cells[at].textContent);
            """, table, title)

    def head(self, table, title):
        return next(e for e in self.all(f"#{table} thead th button") if e.text == title)

    def requests(self):
        """URLs asked for since the last call, the page's own included."""
        messages = (json.loads(line["message"])["message"] for line in self.driver.get_log("performance"))
        urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "chrome:"))]  # chrome: of the browser itself

    def complaints(self):
        """What is on the console, but for what reading pixels here brings up."""
        return [line["message"] for line in self.driver.get_log("browser") if "willReadFrequently" not in line["message"]]

    def screenshot(self, name):
        folder = BUILD / "screenshots"
        folder.mkdir(exist_ok=True)
        self.driver.save_screenshot(str(folder / f"{name}.png"))

    def pixels(self, colour, selector="#memory .chart canvas"):
        """How many pixels of a canvas are of a colour of the palette; and the highest one's row, from 0 to 1."""
        return self.js("""
            const canvas = document.querySelector(arguments[0]);
            const probe = document.body.appendChild(document.createElement("span"));
            probe.style.color = `var(--${arguments[1]})`;
            const [r, g, b] = getComputedStyle(probe).color.match(/[0-9.]+/g).map(Number);
            probe.remove();
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let count = 0, top = canvas.height;
            for (let i = 0; i < data.length; i += 4) {
                if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) {
                    count++;
                    top = Math.min(top, Math.floor(i / 4 / canvas.width));
                }
            }
            return [count, top / canvas.height];
            """, selector, colour)


def frames(browser):
    """What is drawn: (names, bytes, x, width, row) of each frame, in parts of the graph's width."""
    drawn = browser.js("""
        const width = document.querySelector("#flame .rows > svg").width.baseVal.value;
        return [...document.querySelectorAll("#flame .frame")].map(frame => {
            const names = [];
            for (let n = frame.node; n.up; n = n.up)
                names.unshift((n.line ? `${n.name}:${n.line}` : n.name).replaceAll(";", ":"));
            const [x, y, w] = ["x", "y", "width"].map(side => frame[side].baseVal.value);
            return [names, frame.node.size, x / width, (w + 0.5) / width, y / 19];
        });
        """)
    return {tuple(names): tuple(rest) for names, *rest in drawn}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
                 "--no-first-run", "--force-device-scale-factor=1", "--window-size=1280,1000", "--hide-scrollbars",
                 f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]
    if os.geteuid() == 0:  # Chromium refuses to be root otherwise; what it opens here is our own
        arguments.append("--no-sandbox")
    for argument in arguments:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    driver.set_page_load_timeout(DEADLINE)
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver):
    page = Page(driver)
    yield page
    # Of every test, whatever else it looks at.
    requests = page.requests()
    assert len(set(requests)) <= 1, f"expected no request but for the page itself, got {requests}"
    assert page.complaints() == [], "the console is to stay empty"


@pytest.fixture
def render(tmp_path):
    """A profile, as text or the recorded one, to the URL of its page."""
    def render(text=None, *args):
        profile = PROFILE
        if text is not None:
            profile = tmp_path / "profile.yaml"
            profile.write_text(text, encoding="utf-8")
        page = tmp_path / "page.html"
        report("-f", "html", *args, "-o", page, profile=profile)
        return page.as_uri()
    return render
