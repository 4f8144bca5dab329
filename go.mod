module vigil

go 1.26
