// Locates the members of a zip archive that stores them uncompressed, as torch.save does. Unpacks and writes nothing.
// Format: PKWARE's APPNOTE 4.3, with its 64-bit records.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace easydel::weights {

bool looks_like_zip(std::span<const std::byte> bytes);

// The bytes of each member by its name. UserError "file: ...": a record is damaged, or a member is compressed,
// encrypted, duplicated, overlaps another or extends past the end of the file.
std::map<std::string, std::span<const std::byte>, std::less<>> zip_members(std::span<const std::byte> bytes,
                                                                           const std::string& file);

}  // namespace easydel::weights
