/* gar.h as a C program meets it: compiled as strict C11, between processes and between threads. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gar/gar.h"

enum { kNumRanks = 4, kCount = 100003 };

/* Ends the program, and says where, when a call did not return what it should. */
#define EXPECT(condition)                                                                                         \
  do {                                                                                                            \
    if (!(condition)) {                                                                                           \
      fprintf(stderr, "%s:%d: not true: %s; last error: %s\n", __FILE__, __LINE__, #condition, gar_last_error()); \
      exit(1);                                                                                                    \
    }                                                                                                             \
  } while (0)

/* What has no plan, on vectors of kCount elements. */
static void move(gar_comm* comm, int rank, int64_t* values, int64_t* out) {
  enum { kBlock = kCount / kNumRanks };
  const int64_t counts[kNumRanks] = {1, 2, 3, 4}; /* rank r gets as many from every rank */
  const int64_t own[kNumRanks] = {rank + 1, rank + 1, rank + 1, rank + 1};
  gar_request* request = NULL;
  for (int i = 0; i < kCount; ++i) {
    values[i] = 1000 * rank + i % 1000;
    out[i] = -1;
  }
  EXPECT(gar_reduce_to(comm, values, rank == 2 ? out : NULL, kCount, GAR_INT64, GAR_MAX, 2) == GAR_OK);
  EXPECT(out[1234] == (rank == 2 ? 3234 : -1));
  EXPECT(gar_broadcast(comm, out, kCount, GAR_INT64, 2) == GAR_OK && out[1234] == 3234);
  EXPECT(gar_scatter(comm, rank == 1 ? values : NULL, out, kBlock, GAR_INT64, 1) == GAR_OK);
  EXPECT(out[5] == 1000 + (rank * kBlock + 5) % 1000);
  EXPECT(gar_gather_start(comm, values, rank == 0 ? out : NULL, kBlock, GAR_INT64, 0, &request) == GAR_OK);
  EXPECT(gar_request_wait(request) == GAR_OK);
  gar_request_free(request);
  for (int r = 0; rank == 0 && r < kNumRanks; ++r) {
    EXPECT(out[r * kBlock + 7] == 1000 * r + 7);
  }
  EXPECT(gar_all_to_all(comm, values, out, kBlock, GAR_INT64) == GAR_OK);
  for (int r = 0; r < kNumRanks; ++r) {
    EXPECT(out[r * kBlock + 9] == 1000 * r + (rank * kBlock + 9) % 1000);
  }
  EXPECT(gar_all_to_all_v(comm, values, counts, out, own, GAR_INT64) == GAR_OK);
  for (int r = 0; r < kNumRanks; ++r) {
    EXPECT(out[r * (rank + 1)] == 1000 * r + rank * (rank + 1) / 2); /* 1 + 2 + ... elements are for ranks before */
  }
  if (rank == 3) {
    EXPECT(gar_send(comm, values, 1, GAR_INT64) == GAR_ERROR_ARGUMENT);
    EXPECT(strstr(gar_last_error(), "expected one of 2") != NULL);
    EXPECT(gar_broadcast(comm, out, 1, GAR_INT64, kNumRanks) == GAR_ERROR_ARGUMENT);
    EXPECT(gar_gather(comm, GAR_IN_PLACE, out, 1, GAR_INT64, 0) == GAR_ERROR_ARGUMENT);
  }
  EXPECT(gar_barrier(comm) == GAR_OK);
}

static void work(gar_comm* comm, int rank) {
  static const int64_t kSum = kNumRanks * (kNumRanks - 1) / 2;
  int64_t* values = malloc(kCount * sizeof *values);
  int64_t* out = malloc(kCount * sizeof *out);
  gar_request* request = NULL;
  int is_complete = 0;
  EXPECT(values != NULL && out != NULL);
  for (int i = 0; i < kCount; ++i) {
    values[i] = (int64_t)rank * (i + 1);
  }

  EXPECT(gar_comm_rank(comm) == rank && gar_comm_size(comm) == kNumRanks);
  EXPECT(gar_all_reduce(comm, values, out, kCount, GAR_INT64, GAR_SUM) == GAR_OK);
  for (int i = 0; i < kCount; ++i) {
    EXPECT(out[i] == kSum * (i + 1));
  }

  EXPECT(gar_all_reduce_start(comm, GAR_IN_PLACE, values, kCount, GAR_INT64, GAR_MAX, &request) == GAR_OK);
  while (!is_complete) {
    EXPECT(gar_request_test(request, &is_complete) == GAR_OK);
    sched_yield();
  }
  gar_request_free(request);
  for (int i = 0; i < kCount; ++i) {
    EXPECT(values[i] == (int64_t)(kNumRanks - 1) * (i + 1));
  }

  EXPECT(gar_all_gather_prepare(comm, GAR_IN_PLACE, out, kCount / kNumRanks, GAR_INT64, &request) == GAR_OK);
  for (int round = 0; round < 3; ++round) {
    memset(out, 0, kCount * sizeof *out);
    for (int i = 0; i < kCount / kNumRanks; ++i) {
      out[rank * (kCount / kNumRanks) + i] = rank + round;
    }
    EXPECT(gar_request_start(request) == GAR_OK && gar_request_wait(request) == GAR_OK);
    for (int i = 0; i < kCount / kNumRanks * kNumRanks; ++i) {
      EXPECT(out[i] == i / (kCount / kNumRanks) + round);
    }
    EXPECT(gar_barrier(comm) == GAR_OK);
  }
  gar_request_free(request);

  move(comm, rank, values, out);
  free(out);
  free(values);
}

static void run_processes(void) {
  char name[64];
  gar_options options = GAR_OPTIONS_INIT;
  options.timeout_s = 300;
  snprintf(name, sizeof name, "c_program_test.%ld", (long)getpid());
  for (int rank = 0; rank < kNumRanks; ++rank) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
      gar_comm* comm = NULL;
      EXPECT(gar_comm_create_shm(name, rank, kNumRanks, &options, &comm) == GAR_OK);
      work(comm, rank);
      gar_comm_free(comm);
      exit(0);
    }
  }
  for (int rank = 0; rank < kNumRanks; ++rank) {
    int status = 0;
    EXPECT(wait(&status) > 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

static void* run_thread(void* comm) {
  work(comm, gar_comm_rank(comm));
  return NULL;
}

static void run_threads(void) {
  gar_comm* comms[kNumRanks];
  pthread_t threads[kNumRanks];
  EXPECT(gar_comm_create_threads(kNumRanks, NULL, comms) == GAR_OK);
  for (int rank = 0; rank < kNumRanks; ++rank) {
    EXPECT(pthread_create(&threads[rank], NULL, run_thread, comms[rank]) == 0);
  }
  for (int rank = 0; rank < kNumRanks; ++rank) {
    EXPECT(pthread_join(threads[rank], NULL) == 0);
    gar_comm_free(comms[rank]);
  }
}

/* Prices, plans and proofs. */
static void check_plans(void) {
  char* text = NULL;
  char* plan = NULL;
  int is_proved = -1;
  EXPECT(gar_predict("star:8", 1000000, GAR_FLOAT32, "ring,cps", &text) == GAR_OK);
  EXPECT(strstr(text, "\"schema\": \"gar.predict/1\"") != NULL && strstr(text, "\"ring\"") != NULL);
  gar_text_free(text);
  EXPECT(gar_predict("star:8", 1000000, GAR_FLOAT32, NULL, &text) == GAR_OK);
  EXPECT(strstr(text, "\"gentree+\"") != NULL);
  gar_text_free(text);
  EXPECT(gar_plan("star:8", 1000000, GAR_FLOAT64, NULL, &plan) == GAR_OK);
  EXPECT(strstr(plan, "\"count\": 1000000") != NULL || strstr(plan, "\"count\":1000000") != NULL);
  EXPECT(gar_verify(plan, &is_proved, &text) == GAR_OK && is_proved == 1);
  EXPECT(strstr(text, "\"gar.verify/1\"") != NULL);
  gar_text_free(text);
  gar_text_free(plan);
  /* Rank 1 sends nothing: a plan in order, and wrong. */
  EXPECT(gar_verify("{\"schema\":\"gar.plan/2\",\"num_ranks\":2,\"num_units\":1,"
                    "\"programs\":[[[0,[1,0,1],[]]],[[0,[],[0,0,1,1]]]]}",
                    &is_proved, NULL) == GAR_OK);
  EXPECT(is_proved == 0);
  text = NULL;
  EXPECT(gar_predict("star:0", 1, GAR_FLOAT32, NULL, &text) == GAR_ERROR_ARGUMENT && text == NULL);
  EXPECT(gar_predict("star:8", 0, GAR_FLOAT32, NULL, &text) == GAR_ERROR_ARGUMENT);
  EXPECT(strstr(gar_last_error(), "`count` is 0") != NULL);
  EXPECT(gar_predict("star:8", 1, GAR_FLOAT32, "rign", &text) == GAR_ERROR_ARGUMENT);
  EXPECT(gar_plan(NULL, 1, GAR_FLOAT32, NULL, &plan) == GAR_ERROR_ARGUMENT);
  EXPECT(gar_plan("star:8", 1, 12, NULL, &plan) == GAR_ERROR_ARGUMENT);
  EXPECT(gar_verify("/nowhere/plan.json", &is_proved, NULL) == GAR_ERROR_PARSE);
  EXPECT(gar_verify("{", &is_proved, NULL) == GAR_ERROR_PARSE);
  gar_text_free(NULL);
}

int main(void) {
  const uint16_t halves[3] = {0x3c00, 0x4000, 0x4200}; /* 1, 2, 3 in binary16 */
  const void* operands[3] = {&halves[0], &halves[1], &halves[2]};
  uint16_t sum = 0;
  EXPECT(strcmp(gar_last_error(), "") == 0);
  EXPECT(gar_reduce(GAR_FLOAT16, GAR_SUM, &sum, operands, 3, 1) == GAR_OK);
  EXPECT(sum == 0x4600); /* 6 */
  EXPECT(gar_all_reduce(NULL, NULL, NULL, 0, GAR_FLOAT32, GAR_SUM) == GAR_ERROR_ARGUMENT);
  EXPECT(strstr(gar_last_error(), "`comm` is NULL") != NULL);
  EXPECT(gar_type_size(GAR_BFLOAT16) == 2 && gar_version()[0] != '\0');
  check_plans();
  run_processes(); /* before there are threads: a fork copies one only */
  run_threads();
  return 0;
}
