module benchrun

go 1.26
