// Package errortable holds the documented answer of every RPC to everything that can go wrong, as data that people review, and the
// tests that reach each of them through HTTP: the whole driver in one process on a simulated cloud, in virtual time.
//
// testdata/table.txt says which code each kind of error becomes in each RPC, before and after a request that may have changed the
// cloud. testdata/statuses.txt says what each RPC answers about objects in every status Cinder has.
package errortable
