// Package recipe reads, writes and compares recipes: specs in YAML files, to be
// kept beside the code that they run, sent to somebody else, and launched again
// by the interface or by slipway run -f. The fields are those of the API. A
// recipe never holds the value of a variable whose name looks secret: it names
// the variable, and whoever runs it gives the value.
package recipe
