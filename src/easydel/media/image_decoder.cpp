#include "easydel/media/image_decoder.h"

#include <dlfcn.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/media/image_header.h"
#include "easydel/media/image_shape.h"

namespace easydel::media {
namespace {

std::filesystem::path path_of_decoder() {
  Dl_info info = {};
  check(::dladdr(reinterpret_cast<const void*>(&load_image_decoder), &info) != 0,
        "dladdr does not know libeasydel_base.so");
  return std::filesystem::path(info.dli_fname).parent_path() / "libeasydel_media.so";
}

}  // namespace

ImageDecoder& load_image_decoder(const std::filesystem::path& path) {
  if (!files::exists(path))
    refuse(path.string(), "is not there: this program was built without libjpeg, libpng and libwebp, which read images",
           "install them (sudo apt-get install libjpeg-dev libpng-dev libwebp-dev) and build again");
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = ::dlerror();
    refuse(path.string(), str("cannot be loaded: ", why ? why : "unknown reason"),
           "it reads images; install libjpeg62-turbo, libpng16-16 and libwebp7, or build again");
  }
  using Entry = ImageDecoder* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "easydel_media_entry"));
  if (!entry) refuse(path.string(), "has no easydel_media_entry: it belongs to another version", "rebuild easydel");
  return *entry();
}

ImageDecoder& image_decoder() {
  static ImageDecoder& one = load_image_decoder(path_of_decoder());
  return one;
}

bool image_decoder_is_there() { return files::exists(path_of_decoder()); }

Image decode_image(std::span<const uint8_t> file, const std::string& where) {
  const ImageHeader header = read_image_header(file, where);
  Image out{header.width, header.height, {}};
  out.pixels.resize(size_t(header.width * header.height * 3));
  image_decoder().decode(file, header, where, out);
  return out;
}

Image decode_upright(std::span<const uint8_t> file, const std::string& where) {
  return upright(decode_image(file, where), read_image_header(file, where).orientation);
}

}  // namespace easydel::media
