"""The chat page as it is sent, without a browser: every control is there, has a name for screen readers, and can be reached by keys."""
import html.parser
import re

import pytest

from server import Server

CONTROLS = {"new": "button", "export": "button", "import": "button", "send": "button", "stop": "button", "file": "input", "key": "input", "model": "select",
            "system": "textarea", "temperature": "input", "top_p": "input", "max_tokens": "input", "seed": "input", "schema": "textarea", "tools": "textarea",
            "thinking": "input", "logprobs": "input", "text": "textarea"}


class Page(html.parser.HTMLParser):
    """Of each control: its tag, attributes, and the text that names it."""

    def __init__(self, text):
        super().__init__()
        self.controls, self.tags, self.open, self.label = {}, [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "label":
            self.label = ""
        if tag in ("button", "input", "select", "textarea"):
            self.open = [tag, attributes, attributes.get("aria-label") or (self.label or "").strip()]
            self.controls[attributes["id"]] = self.open

    def handle_endtag(self, tag):
        if tag == "label":
            if self.open and not self.open[2]:
                self.open[2] = self.label.strip()
            self.label = None
        if tag == "button":
            self.open = None

    def handle_data(self, data):
        if self.label is not None:
            self.label += data
        if self.open and self.open[0] == "button":
            self.open[2] += data.strip()


@pytest.fixture(scope="module")
def text():
    with Server() as server:
        status, headers, text = server.request("GET", "/")
        assert status == 200 and headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in headers["Content-Security-Policy"] and "unsafe" not in headers["Content-Security-Policy"]
        return text


def test_every_control_is_there_and_has_a_name(text):
    page = Page(text)
    assert {name: control[0] for name, control in page.controls.items()} == CONTROLS
    for name, (tag, attributes, label) in page.controls.items():
        assert label, f"{name} has no label"
        assert tag != "button" or attributes["type"] == "button"
    for tag, attributes in page.tags:
        assert not [key for key in attributes if key.startswith("on")], "a handler in the text"
        assert int(attributes.get("tabindex", "0")) <= 0, "another order of keys"
        assert tag not in ("img", "iframe", "link", "object") and "src" not in attributes and "href" not in attributes
    landmarks = {tag: attributes.get("aria-label") for tag, attributes in page.tags if tag in ("aside", "nav", "main", "section")}
    assert landmarks == {"aside": "Conversations and settings", "nav": "Conversations", "main": None, "section": "Messages"}
    assert ("span", {"id": "status", "role": "status", "aria-live": "polite"}) in page.tags


def test_it_is_light_and_dark_narrow_and_small(text):
    assert "color-scheme: light dark" in text and "width=device-width" in text
    narrow = re.search(r"@media \(max-width: \d+rem\) \{ body \{ grid-template-columns: 1fr;", text)
    assert narrow and ":focus-visible" in text
    assert len(text.encode()) < 80 * 1024
    assert not re.search(r"(background|color): *(white|black|#fff|#000)\b", text), "a colour that one of the schemes hides"
