// The text of report.html: the template of assets/ with its styles, its scripts and the data.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace netsim {

// Writes the page in pieces. `data` is JSON by JsonWriter, and `title` any text.
void write_page(const std::string& title, const std::string& data,
                const std::function<void(std::string_view piece)>& write);

}  // namespace netsim
