! The collectives from Fortran with `use mpi`: types, MPI_IN_PLACE, requests, and what is left to the MPI library.
program fortran_mpi
  use mpi
  implicit none
  integer, parameter :: n = 2500
  integer :: ierr, rank, ranks, failures, calls, i, request
  integer :: total
  failures = 0
  calls = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  total = ranks * (ranks + 1) / 2
  call check_integers
  call check_reals
  call check_others
  call check_blocks
  if (rank == 0) print '(a,i0)', 'calls ', merge(calls * ranks, 0, ranks > 1)
  call MPI_Finalize(ierr)
  if (failures > 0) stop 1

contains

  subroutine expect(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok .and. ierr == MPI_SUCCESS) return
    failures = failures + 1
    print '(a,i0,2a)', 'FAILED on rank ', rank, ': ', what
  end subroutine

  subroutine check_integers
    integer :: a(n), b(n)
    integer(8) :: long(n)
    a = [((rank + 1) * mod(i, 7), i = 1, n)]
    call MPI_Allreduce(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(b == [(total * mod(i, 7), i = 1, n)]), 'MPI_INTEGER, sum')
    call MPI_Allreduce(MPI_IN_PLACE, a, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    call expect(all(a == [(ranks * mod(i, 7), i = 1, n)]), 'MPI_INTEGER, max in place')
    a = ishft(1, rank)
    call MPI_Allreduce(MPI_IN_PLACE, a, n, MPI_INTEGER, MPI_BOR, MPI_COMM_WORLD, ierr)
    call expect(all(a == ishft(1, ranks) - 1), 'MPI_INTEGER, bits in place')
    long = 5000000000_8 * (rank + 1)
    call MPI_Allreduce(MPI_IN_PLACE, long, n, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(long == 5000000000_8 * total), 'MPI_INTEGER8, sum in place')
    calls = calls + 4
  end subroutine

  subroutine check_reals
    real :: s(n)
    double precision :: d(n), e(n)
    s = 0.5 * (rank + 1)
    call MPI_Allreduce(MPI_IN_PLACE, s, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(s == 0.5 * total), 'MPI_REAL, sum in place')
    d = [(0.25d0 * (rank + 1) * mod(i, 5), i = 1, n)]
    call MPI_Allreduce(d, e, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(e == [(0.25d0 * total * mod(i, 5), i = 1, n)]), 'MPI_DOUBLE_PRECISION, sum')
    call MPI_Iallreduce(d, e, n, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call expect(request == MPI_REQUEST_NULL, 'a request that lives on')
    call expect(all(e == [(0.25d0 * mod(i, 5), i = 1, n)]), 'MPI_Iallreduce')
    call MPI_Iallreduce(MPI_IN_PLACE, d, n, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call expect(all(d == [(0.25d0 * total * mod(i, 5), i = 1, n)]), 'MPI_Iallreduce in place')
    calls = calls + 3  ! the minimum is left to MPI
  end subroutine

  subroutine check_others
    logical :: flags(3)
    complex(kind(1d0)) :: z(20)
    integer :: pairs(2, 10)
    integer :: column, values(4, 6), sums(6)
    flags = [.true., rank == 0, .false.]
    call MPI_Allreduce(MPI_IN_PLACE, flags, 3, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
    call expect(flags(1) .and. flags(2) .and. .not. flags(3), 'MPI_LOGICAL')
    z = cmplx(rank + 1, -1, kind(1d0))
    call MPI_Allreduce(MPI_IN_PLACE, z, 20, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(z == cmplx(total, -ranks, kind(1d0))), 'MPI_DOUBLE_COMPLEX')
    pairs(1, :) = rank
    pairs(2, :) = 10 * rank
    call MPI_Allreduce(MPI_IN_PLACE, pairs, 10, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call expect(all(pairs(1, :) == ranks - 1) .and. all(pairs(2, :) == 10 * (ranks - 1)), 'MPI_2INTEGER, MPI_MAXLOC')
    ! Every fourth integer, gathered.
    call MPI_Type_vector(6, 1, 4, MPI_INTEGER, column, ierr)
    call MPI_Type_commit(column, ierr)
    values = -1
    values(1, :) = rank
    call check_column(values, column)
    call MPI_Type_free(column, ierr)
    sums = rank
    call MPI_Allreduce(MPI_IN_PLACE, sums, 6, MPI_INTEGER, MPI_MIN, MPI_COMM_SELF, ierr)
    call expect(all(sums == rank), 'MPI_COMM_SELF')
  end subroutine

  subroutine check_column(values, column)
    integer, intent(in) :: values(4, 6), column
    integer :: gathered(6, ranks)
    call MPI_Allgather(values, 1, column, gathered, 6, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call expect(all(gathered == spread([(i, i = 0, ranks - 1)], 1, 6)), 'MPI_Allgather of columns')
  end subroutine

  subroutine check_blocks
    double precision :: whole(n, ranks), part(n), all_parts(n, ranks)
    do i = 1, ranks
      whole(:, i) = i * (rank + 1)
    end do
    call MPI_Reduce_scatter_block(whole, part, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(part == (rank + 1) * total), 'MPI_Reduce_scatter_block')
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, whole, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(whole(:, 1) == (rank + 1) * total), 'MPI_Reduce_scatter_block in place')
    call MPI_Allgather(part, n, MPI_DOUBLE_PRECISION, all_parts, n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
    call expect(all(all_parts == spread([(i * total, i = 1, ranks)], 1, n)), 'MPI_Allgather')
    all_parts = 0
    all_parts(:, rank + 1) = part
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_parts, n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
    call expect(all(all_parts == spread([(i * total, i = 1, ranks)], 1, n)), 'MPI_Allgather in place')
    calls = calls + 4
  end subroutine
end program
