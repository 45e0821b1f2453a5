#include "easydel/base/fetched.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <string>
#include <string_view>

#include "easydel/base/error.h"

namespace easydel::files {
namespace {

constexpr std::string_view pointer_begins = "version https://git-lfs.github.com/spec/";
constexpr std::array<std::string_view, 5> pages_begin = {"<!doctype html", "<html", "<head", "<?xml", "<error"};

std::string first_bytes(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";  // a pipe would lose what is read here
  std::string out(256, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(size_t(std::max<std::streamsize>(in.gcount(), 0)));
  return out;
}

}  // namespace

void refuse_unfetched(const std::filesystem::path& file) {
  std::string begin = first_bytes(file);
  if (begin.starts_with(pointer_begins))
    refuse(file.string(), "is a Git LFS pointer, not the file itself",
           "run 'git lfs pull' in its folder, or fetch the file again");
  if (begin.starts_with("\xEF\xBB\xBF")) begin.erase(0, 3);
  begin.erase(0, begin.find_first_not_of(" \t\r\n"));
  std::ranges::transform(begin, begin.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  if (std::ranges::any_of(pages_begin, [&](std::string_view page) { return begin.starts_with(page); }))
    refuse(file.string(), "is a web page that was saved under this name, probably an error page",
           "fetch the file again; the server may ask for a login (HF_TOKEN)");
}

}  // namespace easydel::files
