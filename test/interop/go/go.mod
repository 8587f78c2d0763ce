module rotunda.dev/interop

go 1.21
