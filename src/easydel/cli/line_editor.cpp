#include "easydel/cli/line_editor.h"

#include <dlfcn.h>
#include <histedit.h>

#include <array>
#include <clocale>
#include <cstdio>
#include <string_view>

#include "easydel/text/unicode.h"

namespace easydel::cli {
namespace {

constexpr std::string_view begin_pastes = "\033[?2004h", end_pastes = "\033[?2004l";
constexpr std::wstring_view paste_ends = L"\033[201~";
constexpr int history_size = 1000;

// The functions of libedit.
struct Editline {
  decltype(&::el_init) init;
  decltype(&::el_end) end;
  decltype(&::el_wset) set;
  decltype(&::el_wgets) gets;
  decltype(&::el_wgetc) getc;
  decltype(&::el_wline) line;
  decltype(&::el_cursor) cursor;
  decltype(&::el_deletestr) erase;
  decltype(&::el_winsertstr) insert;
  decltype(&::history_winit) history_init;
  decltype(&::history_wend) history_end;
  decltype(&::history_w) history;
};

// nullptr: there is no such library, or it lacks a function.
const Editline* editline() {
  static const std::optional<Editline> loaded = []() -> std::optional<Editline> {
    void* const library = ::dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return std::nullopt;
    Editline out = {};
    bool all = true;
    const auto find = [&]<class Function>(Function& function, const char* name) {
      function = reinterpret_cast<Function>(::dlsym(library, name));
      all = all && function;
    };
    find(out.init, "el_init");
    find(out.end, "el_end");
    find(out.set, "el_wset");
    find(out.gets, "el_wgets");
    find(out.getc, "el_wgetc");
    find(out.line, "el_wline");
    find(out.cursor, "el_cursor");
    find(out.erase, "el_deletestr");
    find(out.insert, "el_winsertstr");
    find(out.history_init, "history_winit");
    find(out.history_end, "history_wend");
    find(out.history, "history_w");
    return all ? std::optional(out) : std::nullopt;
  }();
  return loaded ? &*loaded : nullptr;
}

wchar_t* plain_prompt(EditLine*) {
  static std::array prompt{L'>', L' ', L'\0'};
  return prompt.data();
}

// libedit counts no columns between two \1.
wchar_t* bold_prompt(EditLine*) {
  static std::wstring prompt = L"\1\033[1m\1>\1\033[0m\1 ";
  return prompt.data();
}

unsigned char clear_message(EditLine* line, int) {
  const Editline& edit = *editline();
  const LineInfoW* const shown = edit.line(line);
  edit.cursor(line, int(shown->lastchar - shown->cursor));
  edit.erase(line, int(shown->lastchar - shown->buffer));
  return CC_REFRESH;
}

// Inserts what the terminal sends up to the end of the paste; line breaks are part of the message.
unsigned char insert_paste(EditLine* line, int) {
  const Editline& edit = *editline();
  std::wstring text;
  for (wchar_t c = 0; !text.ends_with(paste_ends) && edit.getc(line, &c) == 1;) text += c == L'\r' ? L'\n' : c;
  if (text.ends_with(paste_ends)) text.resize(text.size() - paste_ends.size());
  while (text.ends_with(L'\n')) text.pop_back();
  return edit.insert(line, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

class LibeditLines final : public LineEditor {
 public:
  LibeditLines(const Editline& edit, bool colour) : edit_(edit) {
    // libedit converts bytes to characters by the locale.
    if (!std::setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    line_ = edit_.init("easydel", stdin, stderr, stderr);
    history_ = edit_.history_init();
    HistEventW event = {};
    edit_.history(history_, &event, H_SETSIZE, history_size);
    edit_.set(line_, EL_EDITOR, L"emacs");
    edit_.set(line_, EL_SIGNAL, 1);
    edit_.set(line_, EL_HIST, edit_.history, history_);
    edit_.set(line_, EL_PROMPT_ESC, colour ? bold_prompt : plain_prompt, L'\1');
    edit_.set(line_, EL_ADDFN, L"clear-message", L"Clear the message", clear_message);
    edit_.set(line_, EL_ADDFN, L"insert-paste", L"Insert pasted text", insert_paste);
    edit_.set(line_, EL_SETTY, L"-d", L"-isig", nullptr);  // Ctrl-C is a key while a line is edited
    edit_.set(line_, EL_BIND, L"^C", L"clear-message", nullptr);
    edit_.set(line_, EL_BIND, L"\\e[200~", L"insert-paste", nullptr);
    edit_.set(line_, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
  }
  ~LibeditLines() override {
    edit_.end(line_);
    edit_.history_end(history_);
  }
  LibeditLines(const LibeditLines&) = delete;
  LibeditLines& operator=(const LibeditLines&) = delete;

  std::optional<std::string> read() override {
    std::fputs(begin_pastes.data(), stderr);
    int count = 0;
    const wchar_t* const typed = edit_.gets(line_, &count);
    std::fputs(end_pastes.data(), stderr);
    if (!typed || count <= 0) return std::nullopt;
    std::wstring text(typed, size_t(count));
    if (text.ends_with(L'\n')) text.pop_back();
    HistEventW event = {};
    if (!text.empty()) edit_.history(history_, &event, H_ENTER, text.c_str());
    std::string out;
    for (const wchar_t c : text) text::append_utf8(out, static_cast<char32_t>(c));
    return out;
  }

 private:
  const Editline& edit_;
  EditLine* line_ = nullptr;
  HistoryW* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineEditor> make_line_editor(bool colour) {
  const Editline* const edit = editline();
  return edit ? std::make_unique<LibeditLines>(*edit, colour) : nullptr;
}

}  // namespace easydel::cli
