// The entry point of libeasydel_media.so.
#include "easydel/media/decoders.h"

#include "easydel/base/error.h"
#include "easydel/media/image_decoder.h"

namespace easydel::media {
namespace {

class Decoders final : public ImageDecoder {
 public:
  void decode(std::span<const uint8_t> file, const ImageHeader& header, const std::string& where, Image& out) override {
    switch (header.form) {
      case ImageForm::png:
        return decode_png(file, where, out);
      case ImageForm::jpeg:
        return decode_jpeg(file, where, out);
      case ImageForm::webp:
        return decode_webp(file, where, out);
    }
  }
  std::string png(const Image& image) override { return encode_png(image); }
  std::string versions() override { return jpeg_version() + ", " + png_version() + ", " + webp_version(); }
};

}  // namespace

void refuse_broken(const std::string& where, ImageForm form, const std::string& why) {
  refuse(where, str("the ", name_of(form), " image cannot be decoded: ", why),
         "the file is cut off or broken: fetch it again, or drop the row");
}

}  // namespace easydel::media

extern "C" easydel::media::ImageDecoder* easydel_media_entry() {
  static easydel::media::Decoders one;
  return &one;
}
