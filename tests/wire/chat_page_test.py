"""The chat page in headless Chromium: every control, texts that try to become more than text, and its policy. Skipped without Chromium or selenium."""
import json
import shutil
import time

import pytest

from server import Server

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    pytest.skip("chromium or chromedriver is not installed", allow_module_level=True)

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

WORDS = ["<script>hit()</script>", "<img src=x onerror=hit()>", "<svg/onload=hit()>", "<iframe src='javascript:hit()'></iframe>",
         "<a href='javascript:hit()'>x</a>", "\"><b onmouseover=hit()>", "'><input autofocus onfocus=hit()>", "&lt;script&gt;hit()&lt;/script&gt;",
         "<style>@import '//x'</style>", "[x](javascript:hit())", "<object data=javascript:hit()>", "<base href=//x>"]
FRAMES = ["{}", "```html\n{}\n```", "# {}\n- {}", "[a]({})", "|a|b|\n|-|-|\n|{}|`{}`|"]
PAYLOADS = [frame.replace("{}", word) for word in WORDS for frame in FRAMES]
FORBIDDEN = "#log script, #log img, #log svg, #log iframe, #log input, #log style, #log object, #log base, #log b, #conversations *:not(button)"
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"],
                                                                         "additionalProperties": False}}}]


@pytest.fixture(scope="module")
def server():
    with Server("--set", "base_config.values.max_position_embeddings=8192", "--tool-parser-name", "hermes") as one:
        yield one


@pytest.fixture
def browser(server, tmp_path):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        driver.get(server.url + "/")
        driver.execute_script("window.hits = 0; window.hit = () => { ++window.hits; }; window.violations = [];"
                              "document.addEventListener('securitypolicyviolation', (event) => window.violations.push(event.violatedDirective));")
        yield driver
        assert driver.execute_script("return [window.hits, window.violations]") == [0, []]
        assert [line for line in driver.get_log("browser") if line["level"] != "DEBUG" and "favicon" not in line["message"]] == []
    finally:
        driver.quit()


def at(browser, name):
    return browser.find_element(By.ID, name)


def until(browser, condition):
    return WebDriverWait(browser, 120, poll_frequency=0.05).until(lambda _: condition())


def fill(browser, name, text):
    """As if pasted; the page hears of the change."""
    browser.execute_script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", at(browser, name), text)


def idle(browser):
    return at(browser, "status").text == "" and at(browser, "send").is_enabled()


def ask(browser, text, key=None):
    fill(browser, "text", text)
    if key:
        at(browser, "text").send_keys(key)
    else:
        at(browser, "send").click()
    until(browser, lambda: idle(browser))


def articles(browser, kind):
    """Their texts, at once: the page draws them anew while an answer comes."""
    return browser.execute_script(f"return [...document.querySelectorAll('#log article.{kind}')].map((one) => one.innerText.trim())")


def button(browser, text):
    return [one for one in browser.find_elements(By.CSS_SELECTOR, "#log button") if one.text == text]


def stored(browser):
    """The last answer of the newest conversation."""
    return browser.execute_script("return JSON.parse(localStorage.getItem('conversations'))[0].messages.at(-1).content")


def test_every_control(browser, server, tmp_path):
    until(browser, lambda: at(browser, "model").text == "stories260K-chat")
    for name, value in (("system", "Be kind."), ("temperature", "0.5"), ("top_p", "0.9"), ("max_tokens", "12"), ("seed", "3")):
        fill(browser, name, value)
    ask(browser, "Hello", Keys.ENTER)
    first = articles(browser, "assistant")
    assert articles(browser, "user")[0].startswith("USER\nHello") and len(first) == 1 and "12 tokens" in first[0]
    body = {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}], "temperature": 0.5, "top_p": 0.9, "max_tokens": 12,
            "seed": 3}
    expected = server.request("POST", "/v1/chat/completions", body)[2]["choices"][0]["message"]["content"]
    assert "".join(expected.split()) in "".join(first[0].split())
    button(browser, "Regenerate")[0].click()  # a branch with the same seed
    until(browser, lambda: idle(browser) and len(browser.find_elements(By.CSS_SELECTOR, "#conversations button")) == 2)
    assert articles(browser, "assistant")[0].split("\n")[1] == first[0].split("\n")[1]
    button(browser, "Edit")[0].click()
    assert at(browser, "text").get_attribute("value") == "Hello" and articles(browser, "user") == []
    at(browser, "logprobs").click()
    ask(browser, "Goodbye")
    browser.find_element(By.CSS_SELECTOR, "#log article.assistant details:last-of-type summary").click()
    tokens = browser.find_elements(By.CSS_SELECTOR, "#log .tokens span")
    assert "".join(one.get_attribute("textContent") for one in tokens) == stored(browser)
    assert all(" %\nmost probable:\n" in one.get_attribute("title") for one in tokens)
    at(browser, "logprobs").click()

    fill(browser, "schema", "{")
    at(browser, "new").click()
    fill(browser, "text", "x")
    at(browser, "send").click()
    assert at(browser, "status").text.startswith("The schema or the tools are not JSON")
    fill(browser, "schema", '{"const": {"answer": 42}}')
    fill(browser, "max_tokens", "60")
    ask(browser, "Which?")
    assert json.loads(stored(browser)) == {"answer": 42}
    fill(browser, "schema", "")

    # Calls are shown, and their results typed in. A tool that has to be called comes by a conversation that is imported.
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    told = [{"title": "calls", "messages": [{"role": "user", "content": "Add."}, {"role": "assistant", "content": "", "reasoning_content": "So I add.",
                                                                                  "tool_calls": [call]}]}]
    (tmp_path / "in.json").write_text(json.dumps(told))
    browser.execute_script("window.opened = 0; document.getElementById('file').addEventListener('click', (event) => { ++window.opened; event.preventDefault(); })")
    at(browser, "import").click()
    assert browser.execute_script("return window.opened") == 1
    at(browser, "file").send_keys(str(tmp_path / "in.json"))
    until(browser, lambda: "calls" in at(browser, "conversations").text)
    browser.find_element(By.XPATH, "//nav/button[.='calls']").click()
    fill(browser, "tools", json.dumps(TOOLS))
    assert 'add({"a": 1})' in articles(browser, "assistant")[0]
    details = browser.find_element(By.CSS_SELECTOR, "#log details")
    assert "So I add." not in details.text
    details.find_element(By.TAG_NAME, "summary").click()
    assert "So I add." in details.text
    browser.find_element(By.CSS_SELECTOR, "#log textarea[aria-label='Result of add']").send_keys("2")
    at(browser, "thinking").click()
    button(browser, "Give the result")[0].click()
    until(browser, lambda: idle(browser) and len(articles(browser, "assistant")) == 2)
    assert articles(browser, "tool") == ["TOOL\n2"]

    at(browser, "export").click()
    until(browser, lambda: (tmp_path / "conversations.json").exists())
    assert "calls" in [one["title"] for one in json.loads((tmp_path / "conversations.json").read_text())]
    assert browser.execute_script("return localStorage.getItem('key')") is None
    fill(browser, "key", "sk-of-a-test")
    assert browser.execute_script("return sessionStorage.getItem('key')") == "sk-of-a-test"
    browser.get(server.url + "/")  # what is kept is there again
    assert at(browser, "system").get_attribute("value") == "Be kind." and "calls" in at(browser, "conversations").text
    browser.execute_script("window.hits = 0; window.violations = []")


def test_by_keyboard_alone(browser):
    def press(*keys):
        ActionChains(browser).send_keys(*keys).perform()

    def go_to(script):
        """Tab until `script` is true of the element that has the focus, which has to be seen everywhere."""
        for _ in range(100):
            press(Keys.TAB)
            found, outline = browser.execute_script(
                f"const on = document.activeElement; return [Boolean({script}), on === document.body || getComputedStyle(on).outlineStyle];")
            assert outline != "none"
            if found:
                return
        raise AssertionError("Tab does not reach it: " + script)

    def conversations():
        return browser.find_elements(By.CSS_SELECTOR, "#conversations button")

    until(browser, lambda: at(browser, "model").text == "stories260K-chat")
    go_to("on.id === 'max_tokens'"), press("8")
    go_to("on.id === 'logprobs'"), press(Keys.SPACE)
    go_to("on.id === 'text'"), press("Hello", Keys.ENTER)
    until(browser, lambda: len(articles(browser, "assistant")) == 1 and idle(browser))
    assert "8 tokens" in articles(browser, "assistant")[0]
    go_to("on.matches('#log summary')"), press(Keys.ENTER)
    assert browser.execute_script("return document.activeElement.parentElement.open")
    go_to("on.textContent === 'Regenerate'"), press(Keys.SPACE)
    until(browser, lambda: len(conversations()) == 2 and idle(browser))
    go_to("on.textContent === 'Edit'"), press(Keys.ENTER)
    assert at(browser, "text").get_attribute("value") == "Hello" and articles(browser, "user") == []
    go_to("on.id === 'new'"), press(Keys.ENTER)
    go_to("on.matches('#conversations button:last-of-type')"), press(Keys.ENTER)
    assert len(articles(browser, "assistant")) == 1
    # An answer that takes long is stopped.
    go_to("on.id === 'new'"), press(Keys.ENTER)
    go_to("on.id === 'max_tokens'"), press(Keys.BACKSPACE)
    go_to("on.id === 'logprobs'"), press(Keys.SPACE)
    go_to("on.id === 'schema'"), press(json.dumps({"type": "array", "items": {"const": 1}, "minItems": 3000, "maxItems": 3000}))
    go_to("on.id === 'text'"), press("Count.", Keys.ENTER)
    until(browser, lambda: at(browser, "stop").is_enabled())
    go_to("on.id === 'stop'"), press(Keys.SPACE)
    until(browser, lambda: idle(browser))
    assert len(stored(browser)) < 5000


def test_stays_responsive_and_stops(browser):
    fill(browser, "schema", json.dumps({"type": "array", "items": {"const": 1}, "minItems": 3000, "maxItems": 3000}))
    fill(browser, "text", "Count.")
    at(browser, "send").click()
    shown = lambda: len("".join(articles(browser, "assistant")))  # noqa: E731
    until(browser, lambda: shown() > 200)
    waits = []
    for letter in "between deltas":
        begin = time.monotonic()
        at(browser, "system").send_keys(letter)
        waits.append(time.monotonic() - begin)
    assert at(browser, "system").get_attribute("value") == "between deltas"
    assert at(browser, "stop").is_enabled() and not at(browser, "send").is_enabled(), "the answer was over before"
    assert sorted(waits)[len(waits) // 2] < 1
    at(browser, "stop").click()
    until(browser, lambda: idle(browser))
    ended = shown()
    time.sleep(0.5)
    assert shown() == ended


def test_nothing_that_is_written_runs(browser, tmp_path):
    assert len(PAYLOADS) == 60
    conversations = []
    for payload in PAYLOADS:
        call = {"id": payload, "type": "function", "function": {"name": payload, "arguments": payload}}
        conversations.append({"title": payload, "messages": [
            {"role": "user", "content": payload},
            {"role": "assistant", "content": payload, "reasoning_content": payload, "tool_calls": [call], "error": payload, "figures": payload,
             "tokens": [{"text": payload, "title": payload}]},
            {"role": payload, "content": payload}, {"role": "tool", "tool_call_id": "x", "content": payload}]})
    (tmp_path / "in.json").write_text(json.dumps(conversations))
    at(browser, "file").send_keys(str(tmp_path / "in.json"))
    count = lambda: len(browser.find_elements(By.CSS_SELECTOR, "#conversations button"))  # noqa: E731
    until(browser, lambda: count() == 60)
    for i in range(60):
        browser.execute_script("document.querySelectorAll('#conversations button')[arguments[0]].click();"
                               "document.querySelectorAll('#log details').forEach((one) => { one.open = true; })", i)
        assert browser.find_elements(By.CSS_SELECTOR, FORBIDDEN) == []
        assert len(browser.find_elements(By.CSS_SELECTOR, "#log article")) == 4
        for link in browser.find_elements(By.CSS_SELECTOR, "#log a"):
            assert link.get_attribute("href").startswith("http")
    # As the answer of a model, cut into tokens.
    for word in WORDS:
        at(browser, "new").click()
        fill(browser, "schema", json.dumps({"const": word}))
        ask(browser, word)
        assert browser.find_elements(By.CSS_SELECTOR, FORBIDDEN) == []
        assert word.split("(")[0].split("'")[0].strip('"') in articles(browser, "assistant")[0].replace("\\", "")
    (tmp_path / "in.json").write_text('{"a": "<img src=x onerror=hit()>"}')
    at(browser, "file").send_keys(str(tmp_path / "in.json"))
    until(browser, lambda: at(browser, "status").text == "The file has no conversations.")
