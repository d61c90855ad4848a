module github.com/regie-run/regie

go 1.26.0
