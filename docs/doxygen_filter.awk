# Shows Doxygen a header the way `make docs` wants it; lines keep their numbers.
#
# The comment that opens a header, written with //, becomes the documentation of the file: \file takes the place of the
# include guard below it. Lines of it that are indented by three spaces are code. Comparisons and special members that
# are defaulted, deleted or moves promise what every reader expects, and need no sentence: they are left out.
NR == 1 { is_opening = 1 }
is_opening && /^\/\// {
  sub(/^\/\/   /, "//       ")
  print "/" $0
  next
}
is_opening {
  is_opening = 0
  if ($1 == "#ifndef") guard = $2
  print "/// \\file"
  next
}
guard && /^#(define|endif)/ && index($0, guard) { print ""; next }
/ = (default|delete);$/ { print ""; next }
/^ +([A-Z][A-Za-z]*|[A-Z][A-Za-z]*& operator=)\([A-Z][A-Za-z]*&&\)( noexcept)?;$/ { print ""; next }
{ print }
