! An old program: mpif.h, implicit interfaces, MPI_Init_thread.
program fortran_mpif
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 4000
  integer :: ierr, rank, ranks, provided, request, i, failures
  double precision :: d(n), e(n)
  failures = 0
  call MPI_INIT_THREAD(MPI_THREAD_FUNNELED, provided, ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
  if (provided < MPI_THREAD_FUNNELED) failures = failures + 1
  do i = 1, n
    d(i) = (rank + 1) * mod(i, 7)
  end do
  call MPI_ALLREDUCE(d, e, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call compare('MPI_ALLREDUCE', e)
  e = d
  call MPI_ALLREDUCE(MPI_IN_PLACE, e, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call compare('MPI_ALLREDUCE in place', e)
  e = d
  call MPI_IALLREDUCE(MPI_IN_PLACE, e, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, request, ierr)
  call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
  call compare('MPI_IALLREDUCE in place', e)
  if (rank == 0) print '(a,i0)', 'calls ', merge(3 * ranks, 0, ranks > 1)
  call MPI_FINALIZE(ierr)
  if (failures > 0) stop 1

contains

  subroutine compare(what, values)
    character(*), intent(in) :: what
    double precision, intent(in) :: values(n)
    do i = 1, n
      if (values(i) /= ranks * (ranks + 1) / 2 * mod(i, 7)) then
        print '(a,i0,3a,i0)', 'FAILED on rank ', rank, ': ', what, ', element ', i
        failures = failures + 1
        return
      end if
    end do
  end subroutine
end program
