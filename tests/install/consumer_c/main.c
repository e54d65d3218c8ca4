/* A C program that has nothing but the installed package: an AllReduce of one rank, and a sum of three operands. */
#include <stdio.h>

#include "gar/gar.h"

int main(void) {
  gar_comm* comm = NULL;
  double x[2] = {1, 2};
  const void* operands[3];
  if (gar_comm_create_threads(1, NULL, &comm) != GAR_OK ||
      gar_all_reduce(comm, GAR_IN_PLACE, x, 2, GAR_FLOAT64, GAR_SUM) != GAR_OK) {
    printf("%s\n", gar_last_error());
    return 1;
  }
  gar_comm_free(comm);
  operands[0] = operands[1] = operands[2] = x;
  if (gar_reduce(GAR_FLOAT64, GAR_SUM, x, operands, 3, 2) != GAR_OK) {
    printf("%s\n", gar_last_error());
    return 1;
  }
  printf("gar %s: %g %g\n", gar_version(), x[0], x[1]);
  return x[0] == 3 && x[1] == 6 ? 0 : 1;
}
