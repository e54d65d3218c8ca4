// What {fmt} leaves to its library, compiled once and for all: header-only, every file that formats something would
// compile it again; linked to the library, everything we install would need it at run time. Weak, so that a program may
// have the real library next to ours.
#ifndef FMT_HEADER_ONLY
#include <fmt/format.h>
#undef FMT_FUNC
#define FMT_FUNC [[gnu::weak]]
#include <fmt/format-inl.h>

namespace fmt::detail {

template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
template auto dragonbox::to_decimal<float>(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal<double>(double) noexcept -> dragonbox::decimal_fp<double>;
template void buffer<char>::append<char>(const char*, const char*);
template void vformat_to<char>(buffer<char>&, basic_string_view<char>, basic_format_args<buffer_context<char>>,
                               locale_ref);

}  // namespace fmt::detail
#endif
