// Package api is the language of the loopback API: the wire types of its
// requests, answers and events. Package route declares the routes. The types of the
// user interface and the OpenAPI document are generated from here and nowhere
// else (build/tsgen), and a test fails when they are out of date.
//
// Times are RFC 3339, amounts of memory are bytes, lengths of time are texts
// such as "30m" unless a field's name ends in Seconds or Ms. Parts of devices
// are whole thousandths of one device, loads of devices hundredths of a percent
// (0 to 10000), power milliwatts and energy millijoules. Lists are never null: a
// list without members is [].
package api
