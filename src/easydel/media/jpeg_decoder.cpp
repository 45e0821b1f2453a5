// JPEG by libjpeg(-turbo), with its exact transform and its smooth upsampling, which Pillow uses, too.
#include <csetjmp>
#include <cstdio>

// It uses FILE without including stdio.h.
#include <jpeglib.h>

#include "easydel/base/error.h"
#include "easydel/media/decoders.h"

namespace easydel::media {
namespace {

// libjpeg's errors come back by longjmp; nothing between has a destructor.
struct ErrorState {
  jpeg_error_mgr manager;
  jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

ErrorState& state_of(j_common_ptr library) { return *reinterpret_cast<ErrorState*>(library->err); }

void leave(j_common_ptr library) {
  ErrorState& state = state_of(library);
  state.manager.format_message(library, state.text);
  longjmp(state.back, 1);
}

void leave_at_end(j_common_ptr library) {
  ErrorState& state = state_of(library);
  std::snprintf(state.text, sizeof state.text, "it ends too early");
  longjmp(state.back, 1);
}

void start_source(j_decompress_ptr) {}
boolean next_bytes(j_decompress_ptr library) {
  leave_at_end(reinterpret_cast<j_common_ptr>(library));
  return FALSE;
}
void skip_bytes(j_decompress_ptr library, long count) {
  if (count <= 0) return;
  if (size_t(count) > library->src->bytes_in_buffer) leave_at_end(reinterpret_cast<j_common_ptr>(library));
  library->src->next_input_byte += count;
  library->src->bytes_in_buffer -= size_t(count);
}

uint8_t times(uint8_t a, uint8_t b) {
  const unsigned product = unsigned(a) * b + 128;
  return uint8_t(((product >> 8) + product) >> 8);
}

// Inks as Adobe's programs write them, inverted: as Pillow's CMYK;I, then its cmyk2rgb.
void put_inks(const uint8_t* inks, uint8_t* out, int64_t pixels) {
  for (int64_t i = 0; i < pixels; ++i, inks += 4, out += 3)
    for (int64_t c = 0; c < 3; ++c) out[c] = uint8_t(inks[3] - times(uint8_t(255 - inks[c]), inks[3]));
}

bool decode_lines(jpeg_decompress_struct& library, ErrorState& state, jpeg_source_mgr& source, Image& out,
                  uint8_t*& line) {
  if (setjmp(state.back) != 0) return false;
  jpeg_create_decompress(&library);
  library.src = &source;
  jpeg_read_header(&library, TRUE);
  const bool has_inks = library.num_components == 4;
  library.out_color_space = has_inks ? JCS_CMYK : JCS_RGB;
  if (library.image_width != JDIMENSION(out.width) || library.image_height != JDIMENSION(out.height)) {
    std::snprintf(state.text, sizeof state.text, "it has two sizes");
    return false;
  }
  jpeg_start_decompress(&library);
  if (has_inks) line = new uint8_t[size_t(out.width) * 4];
  while (library.output_scanline < library.output_height) {
    uint8_t* const to = out.pixels.data() + int64_t{library.output_scanline} * out.width * 3;
    JSAMPROW row = has_inks ? line : to;
    jpeg_read_scanlines(&library, &row, 1);
    if (has_inks) put_inks(line, to, out.width);
  }
  jpeg_finish_decompress(&library);
  return true;
}

}  // namespace

void decode_jpeg(std::span<const uint8_t> file, const std::string& where, Image& out) {
  jpeg_decompress_struct library = {};
  ErrorState state = {};
  library.err = jpeg_std_error(&state.manager);
  state.manager.error_exit = leave;
  state.manager.output_message = [](j_common_ptr) {};
  jpeg_source_mgr source = {};
  source.next_input_byte = file.data();
  source.bytes_in_buffer = file.size();
  source.init_source = start_source;
  source.fill_input_buffer = next_bytes;
  source.skip_input_data = skip_bytes;
  source.resync_to_restart = jpeg_resync_to_restart;
  source.term_source = start_source;
  uint8_t* line = nullptr;
  const bool is_whole = decode_lines(library, state, source, out, line);
  delete[] line;
  jpeg_destroy_decompress(&library);
  if (!is_whole) refuse_broken(where, ImageForm::jpeg, state.text);
}

std::string jpeg_version() {
#if defined(LIBJPEG_TURBO_VERSION_NUMBER)
  constexpr int number = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005 is 2.1.5
  return str("libjpeg-turbo ", number / 1'000'000, ".", number / 1000 % 1000, ".", number % 1000);
#else
  return str("libjpeg ", JPEG_LIB_VERSION);
#endif
}

}  // namespace easydel::media
