// Where the members of a zip archive lie, for archives whose members are stored as they are (torch.save's): nothing is
// unpacked, nothing is written. Format: PKWARE's APPNOTE 4.3, with its 64-bit records.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace easydel::weights {

bool looks_like_zip(std::span<const std::byte> bytes);

// Each member's bytes by its name. UserError "file: ..." where a record is damaged, a member is compressed, encrypted,
// there twice, overlaps another or reaches beyond the file.
std::map<std::string, std::span<const std::byte>, std::less<>> zip_members(std::span<const std::byte> bytes,
                                                                           const std::string& file);

}  // namespace easydel::weights
