// WebP by libwebp. An animation's first picture is decoded, on a canvas that begins transparent, as Pillow does.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "easydel/base/error.h"
#include "easydel/media/decoders.h"

namespace easydel::media {

void decode_webp(std::span<const uint8_t> file, const std::string& where, Image& out) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) refuse_broken(where, ImageForm::webp, "libwebp has another version");
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const WebPData data{file.data(), file.size()};
  const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)> decoder(WebPAnimDecoderNew(&data, &options),
                                                                                   WebPAnimDecoderDelete);
  WebPAnimInfo info;
  uint8_t* canvas = nullptr;
  int milliseconds = 0;
  if (!decoder || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 || int64_t{info.canvas_width} != out.width ||
      int64_t{info.canvas_height} != out.height || WebPAnimDecoderGetNext(decoder.get(), &canvas, &milliseconds) == 0)
    refuse_broken(where, ImageForm::webp, "libwebp does not take it");
  uint8_t* to = out.pixels.data();
  for (int64_t i = 0; i < out.width * out.height; ++i, canvas += 4, to += 3)
    to[0] = canvas[0], to[1] = canvas[1], to[2] = canvas[2];
}

std::string webp_version() {
  const int number = WebPGetDecoderVersion();  // 0x010204 is 1.2.4
  return str("libwebp ", number >> 16, ".", number >> 8 & 255, ".", number & 255);
}

}  // namespace easydel::media
