package yaql

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// directives of Python's strftime in the form of Go's layouts.
var directives = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'f': "000000", 'p': "PM",
	'A': "Monday", 'a': "Mon", 'B': "January", 'b': "Jan", 'z': "-0700", 'Z': "MST", 'j': "002", '%': "%",
}

// layouts of dates without a format, tried in turn.
var layouts = [...]string{
	time.RFC3339Nano, "2006-1-2T15:04:05.999999999", "2006-1-2 15:04:05.999999999Z07:00", "2006-1-2 15:04:05.999999999", "2006-1-2 15:04",
	"2006-1-2", "2006/1/2", "2.1.2006", "20060102T150405", "20060102", time.RFC1123Z, time.RFC1123, time.ANSIC,
}

func parseTime(s, format string) (any, error) {
	if format == "" {
		for _, layout := range layouts {
			if t, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
				return t, nil
			}
		}
		return nil, failure(BadValue, "%q is no date that is understood; say its format", s)
	}
	layout, err := layoutOf(format)
	if err != nil {
		return nil, err
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return nil, failure(BadValue, "%q is no date of the format %q", s, format)
	}
	return t, nil
}

func layoutOf(format string) (string, error) {
	var layout strings.Builder
	for n := 0; n < len(format); n++ {
		if format[n] != '%' {
			layout.WriteByte(format[n])
			continue
		}
		n++
		if n == len(format) || directives[format[n]] == "" {
			return "", failure(BadValue, "the format %q has a directive that is not known", format)
		}
		layout.WriteString(directives[format[n]])
	}
	return layout.String(), nil
}

// formatTime writes piece by piece: a layout of Go would take parts of the plain text for directives.
func formatTime(t time.Time, format string) (any, error) {
	var b strings.Builder
	for n := 0; n < len(format); n++ {
		switch {
		case format[n] != '%':
			b.WriteByte(format[n])
		case n+1 == len(format) || directives[format[n+1]] == "":
			return nil, failure(BadValue, "the format %q has a directive that is not known", format)
		case format[n+1] == '%':
			b.WriteByte('%')
			n++
		case format[n+1] == 'f':
			b.WriteString(t.Format(".000000")[1:])
			n++
		default:
			b.WriteString(t.Format(directives[format[n+1]]))
			n++
		}
	}
	return b.String(), nil
}

func zone(offset time.Duration) *time.Location {
	if offset == 0 {
		return time.UTC
	}
	return time.FixedZone("", int(offset/time.Second))
}

// date makes a time of year, month, day, hour, minute, second, microsecond; parts that roll over are an error, as in Python.
func date(parts [7]int64, offset time.Duration) (any, error) {
	for _, part := range parts {
		if part < 0 || part > 999_999 {
			return nil, failure(BadValue, "there is no such date or time")
		}
	}
	t := time.Date(int(parts[0]), time.Month(parts[1]), int(parts[2]), int(parts[3]), int(parts[4]), int(parts[5]), int(parts[6])*1000, zone(offset))
	if t.Year() != int(parts[0]) || int64(t.Month()) != parts[1] || int64(t.Day()) != parts[2] || int64(t.Hour()) != parts[3] || int64(t.Minute()) != parts[4] {
		return nil, failure(BadValue, "there is no such date or time")
	}
	return t, nil
}

// tooLong reports that a time span does not fit into 64 bits of nanoseconds.
func tooLong() error {
	return failure(Overflow, "the time span is too long: at most it has 292 years")
}

// span makes a time span of a number of units.
func span(amount float64) (any, error) {
	if math.IsNaN(amount) || math.Abs(amount) >= math.MaxInt64 {
		return nil, tooLong()
	}
	return time.Duration(math.Round(amount/1000)) * time.Microsecond, nil
}

// spanText writes a time span as Python does: "1 day, 2:03:04.000005". Only the days can be negative.
func spanText(d time.Duration) string {
	days := d / (24 * time.Hour)
	if d < days*24*time.Hour {
		days--
	}
	d -= days * 24 * time.Hour
	var b strings.Builder
	if days != 0 {
		fmt.Fprintf(&b, "%d day", days)
		if days != 1 && days != -1 {
			b.WriteByte('s')
		}
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "%d:%02d:%02d", d/time.Hour, d/time.Minute%60, d/time.Second%60)
	if fraction := d % time.Second / time.Microsecond; fraction != 0 {
		fmt.Fprintf(&b, ".%06d", fraction)
	}
	return b.String()
}

func offsetOf(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

func timeFunctions() []*Function {
	var none time.Duration
	offset := may("offset", timespan, none)
	part := func(name, doc string, of func(time.Time) any) *Function {
		return property(name, doc, func(i *Invocation) (any, error) { return of(arg[time.Time](i, 0)), nil }, datetime)
	}
	units := func(name string, unit time.Duration) *Function {
		return property(name, "the time span in "+name, func(i *Invocation) (any, error) {
			return float64(arg[time.Duration](i, 0)) / float64(unit), nil
		}, timespan)
	}
	spans := func(of func(a, b time.Duration) (any, error)) body {
		return func(i *Invocation) (any, error) { return of(arg[time.Duration](i, 0), arg[time.Duration](i, 1)) }
	}
	moved := func(at, by int, sign time.Duration) body {
		return func(i *Invocation) (any, error) {
			return arg[time.Time](i, at).Add(sign * arg[time.Duration](i, by)), nil
		}
	}
	parts := []Param{need("year", integer), need("month", integer), need("day", integer)}
	for _, name := range []string{"hour", "minute", "second", "microsecond"} {
		parts = append(parts, may(name, integer, int64(0)))
	}
	replacing := []Param{need("dt", datetime)}
	for _, p := range parts {
		replacing = append(replacing, may(p.Name, orNull(integer), nil))
	}
	return []*Function{
		function("datetime", "a date and time of its parts", func(i *Invocation) (any, error) {
			var given [7]int64
			for n := range given {
				given[n] = arg[int64](i, n)
			}
			return date(given, arg[time.Duration](i, 7))
		}, append(parts[:len(parts):len(parts)], offset)...),
		function("datetime", "the date and time so many seconds after 1970", func(i *Invocation) (any, error) {
			seconds, fraction := math.Modf(i.number(0))
			if math.Abs(seconds) > 1e12 {
				return nil, failure(BadValue, "the timestamp is too large")
			}
			return time.Unix(int64(seconds), int64(fraction*1e9)).In(zone(arg[time.Duration](i, 1))), nil
		}, need("timestamp", number), offset),
		function("datetime", "a date and time as written, in a format of strftime's", func(i *Invocation) (any, error) {
			return parseTime(arg[string](i, 0), arg[string](i, 1))
		}, need("string", text), may("format", orNull(text), nil)),
		function("timespan", "a length of time", func(i *Invocation) (any, error) {
			total := 0.0
			for n, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond, time.Microsecond} {
				total += i.number(n) * float64(unit)
			}
			return span(total)
		}, may("days", number, int64(0)), may("hours", number, int64(0)), may("minutes", number, int64(0)), may("seconds", number, int64(0)),
			may("milliseconds", number, int64(0)), may("microseconds", number, int64(0))),
		function("now", "the present", func(i *Invocation) (any, error) { return time.Now().In(zone(arg[time.Duration](i, 0))), nil }, offset),
		function("localtz", "the offset of this server's time zone", func(*Invocation) (any, error) { return offsetOf(time.Now()), nil }),
		function("utctz", "the offset of UTC: none", func(*Invocation) (any, error) { return none, nil }),
		operator("+", "a time later", moved(0, 1, 1), datetime, timespan),
		operator("+", "a time later", moved(1, 0, 1), timespan, datetime),
		operator("-", "a time before", moved(0, 1, -1), datetime, timespan),
		operator("-", "the time between", func(i *Invocation) (any, error) {
			from, to := arg[time.Time](i, 1), arg[time.Time](i, 0)
			between := to.Sub(from)
			if !from.Add(between).Equal(to) {
				return nil, tooLong()
			}
			return between, nil
		}, datetime, datetime),
		operator("+", "both time spans", spans(func(a, b time.Duration) (any, error) {
			if sum := a + b; (sum > a) == (b > 0) {
				return sum, nil
			}
			return nil, tooLong()
		}), timespan, timespan),
		operator("-", "one time span without the other", spans(func(a, b time.Duration) (any, error) {
			if rest := a - b; (rest < a) == (b > 0) {
				return rest, nil
			}
			return nil, tooLong()
		}), timespan, timespan),
		operator("/", "how often one time span is in the other", spans(func(a, b time.Duration) (any, error) {
			if b == 0 {
				return nil, failure(DivideByZero, "division by zero")
			}
			return float64(a) / float64(b), nil
		}), timespan, timespan),
		operator("*", "the time span that many times", func(i *Invocation) (any, error) { return span(float64(arg[time.Duration](i, 0)) * i.number(1)) }, timespan, number),
		operator("*", "the time span that many times", func(i *Invocation) (any, error) { return span(float64(arg[time.Duration](i, 1)) * i.number(0)) }, number, timespan),
		operator("/", "a part of the time span", func(i *Invocation) (any, error) {
			if i.number(1) == 0 {
				return nil, failure(DivideByZero, "division by zero")
			}
			return span(float64(arg[time.Duration](i, 0)) / i.number(1))
		}, timespan, number),
		operator("-", "the time span backwards", func(i *Invocation) (any, error) { return -arg[time.Duration](i, 0), nil }, timespan),
		operator("+", "the time span itself", func(i *Invocation) (any, error) { return i.Args[0], nil }, timespan),
		part("year", "the year", func(t time.Time) any { return int64(t.Year()) }),
		part("month", "the month, from 1", func(t time.Time) any { return int64(t.Month()) }),
		part("day", "the day of the month", func(t time.Time) any { return int64(t.Day()) }),
		part("hour", "the hour", func(t time.Time) any { return int64(t.Hour()) }),
		part("minute", "the minute", func(t time.Time) any { return int64(t.Minute()) }),
		part("second", "the second", func(t time.Time) any { return int64(t.Second()) }),
		part("microsecond", "the microsecond", func(t time.Time) any { return int64(t.Nanosecond() / 1000) }),
		part("date", "the beginning of the day", func(t time.Time) any {
			return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
		}),
		part("time", "the time since the beginning of the day", func(t time.Time) any {
			return t.Sub(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location()))
		}),
		part("weekday", "the day of the week, 0 is Monday", func(t time.Time) any { return int64(t.Weekday()+6) % 7 }),
		// Python's YAQL takes the offset off and keeps the zone, so that it is another moment where there is an offset.
		part("utc", "the clock's time in UTC, with the offset that was", func(t time.Time) any { return t.Add(-offsetOf(t)) }),
		part("offset", "the offset from UTC", func(t time.Time) any { return offsetOf(t) }),
		part("timestamp", "the seconds from 1970 to utc", func(t time.Time) any { return float64(t.Add(-offsetOf(t)).UnixMicro()) / 1e6 }),
		units("days", 24*time.Hour), units("hours", time.Hour), units("minutes", time.Minute), units("seconds", time.Second), units("milliseconds", time.Millisecond),
		property("microseconds", "the time span in microseconds", func(i *Invocation) (any, error) { return arg[time.Duration](i, 0).Microseconds(), nil }, timespan),
		method("replace", "the date and time with other parts", func(i *Invocation) (any, error) {
			t := arg[time.Time](i, 0)
			given := [7]int64{int64(t.Year()), int64(t.Month()), int64(t.Day()), int64(t.Hour()), int64(t.Minute()), int64(t.Second()), int64(t.Nanosecond() / 1000)}
			for n := range given {
				if part, ok := i.Args[n+1].(int64); ok {
					given[n] = part
				}
			}
			shift := offsetOf(t)
			if other, ok := i.Args[8].(time.Duration); ok {
				shift = other
			}
			return date(given, shift)
		}, append(replacing, may("offset", orNull(timespan), nil))...),
		method("format", "the date and time in a format of strftime's", func(i *Invocation) (any, error) {
			return formatTime(arg[time.Time](i, 0), arg[string](i, 1))
		}, need("dt", datetime), need("format", text)),
		function("isDatetime", "whether it is a date and time", func(i *Invocation) (any, error) { _, ok := datetime(i.Args[0]); return ok, nil }, need("value", nil)),
		function("isTimespan", "whether it is a time span", func(i *Invocation) (any, error) { _, ok := timespan(i.Args[0]); return ok, nil }, need("value", nil)),
	}
}
