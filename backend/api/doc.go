// Package api has the wire types of the loopback API: its requests, answers and events. Package route declares the
// routes. The types of the user interface and the OpenAPI document are generated from them (build/tsgen), and a test
// fails when they are out of date.
//
// Times are RFC 3339, amounts of memory are bytes, durations are texts such as "30m" unless a field's name ends in
// Seconds or Ms. Parts of devices are whole thousandths of one device, loads of devices hundredths of a percent (0 to
// 10000), power milliwatts and energy millijoules. Lists are never null: an empty list is [].
package api
