/* What every compiler flag of cmake/GarHardening.cmake leaves a trace in; hardening.sh reads the object file. */
#include <string.h>

void gar_probe_use(char* bytes); /* nowhere: this is not linked */

/* A copy into room that is known (fortify), and a frame of several pages with an array in it (stack protector, clash).
 */
int gar_probe_copy(const char* text) {
  char bytes[65536];
  strcpy(bytes, text);
  gar_probe_use(bytes);
  return bytes[0];
}
