! The collectives from Fortran 2008, `use mpi_f08`: handles are types, the error argument may be left out.
program fortran_f08
  use mpi_f08
  implicit none
  integer, parameter :: n = 2500
  integer :: rank, ranks, total, failures, calls, i, provided
  type(MPI_Comm) :: half
  failures = 0
  calls = 0
  call MPI_Init_thread(MPI_THREAD_SERIALIZED, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  total = ranks * (ranks + 1) / 2
  call check_reductions
  call check_requests
  call check_blocks
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, half)
  call check_gather(half)
  call MPI_Comm_free(half)
  if (rank == 0) print '(a,i0)', 'calls ', merge(calls * ranks, 0, ranks > 1)
  call MPI_Finalize()
  if (failures > 0) stop 1

contains

  subroutine expect(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    failures = failures + 1
    print '(a,i0,2a)', 'FAILED on rank ', rank, ': ', what
  end subroutine

  subroutine check_reductions
    integer :: a(n), b(n), ierr
    double precision :: d(n)
    a = [((rank + 1) * mod(i, 7), i = 1, n)]
    call MPI_Allreduce(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(ierr == MPI_SUCCESS .and. all(b == [(total * mod(i, 7), i = 1, n)]), 'MPI_INTEGER, sum')
    d = 0.25d0 * (rank + 1)
    call MPI_Allreduce(MPI_IN_PLACE, d, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call expect(all(d == 0.25d0 * total), 'MPI_DOUBLE_PRECISION, sum in place')
    calls = calls + 2
  end subroutine

  subroutine check_requests
    real, asynchronous :: s(n), t(n)
    type(MPI_Request) :: requests(2)
    s = 0.5 * (rank + 1)
    t = rank
    call MPI_Iallreduce(MPI_IN_PLACE, s, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Iallreduce(MPI_IN_PLACE, t, n, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call expect(all(s == 0.5 * total) .and. all(t == ranks - 1), 'MPI_Iallreduce in place')
    calls = calls + 1  ! the maximum is left to MPI
  end subroutine

  subroutine check_blocks
    double precision :: whole(n, ranks), part(n), all_parts(n, ranks)
    do i = 1, ranks
      whole(:, i) = i * (rank + 1)
    end do
    call MPI_Reduce_scatter_block(whole, part, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call expect(all(part == (rank + 1) * total), 'MPI_Reduce_scatter_block')
    all_parts = 0
    all_parts(:, rank + 1) = part
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_parts, n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
    call expect(all(all_parts == spread([(i * total, i = 1, ranks)], 1, n)), 'MPI_Allgather in place')
    calls = calls + 2
  end subroutine

  subroutine check_gather(comm)
    type(MPI_Comm), intent(in) :: comm
    integer :: mine(n), gathered(n, ranks)
    mine = rank
    call MPI_Allgather(mine, n, MPI_INTEGER, gathered, n, MPI_INTEGER, comm)
    call expect(all(gathered == spread([(ranks - i, i = 1, ranks)], 1, n)), 'MPI_Allgather, ranks backwards')
    calls = calls + 1
  end subroutine
end program
