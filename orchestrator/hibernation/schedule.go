package hibernation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // servers need no files of time zones

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// The limits of a schedule.
const (
	mostExpressions   = 8   // of one kind
	longestExpression = 100 // bytes
	longestZone       = 64
	// apart is the least number of minutes between two transitions.
	apart = 60
)

// LateSleep is how long after its time a sleep may begin. A wake may begin until the next transition.
const LateSleep = 6 * time.Hour

// lateWarning is how long after its time a transition is late.
const lateWarning = time.Hour

const (
	minutesOfDay  = 24 * 60
	minutesOfWeek = 7 * minutesOfDay
)

// Schedule is when an environment sleeps and wakes by itself, each week.
type Schedule struct {
	Zone string `json:"zone"` // IANA's name, such as Europe/Berlin
	// Sleep and Wake are cron expressions: minute, hours, *, *, weekdays (crontab(5)). The minute is one number.
	Sleep []string `json:"sleep"`
	Wake  []string `json:"wake"`
}

// Times are the transitions of a schedule.
type Times struct {
	Schedule
	zone *time.Location
	week []moment // in order, from Sunday 00:00
}

// moment is a transition by the zone's clock.
type moment struct {
	minute int // of the week
	wakes  bool
}

func (m moment) String() string {
	return fmt.Sprintf("%s %02d:%02d", time.Weekday(m.minute/minutesOfDay), m.minute/60%24, m.minute%60)
}

// Transition is a time at which an environment begins to sleep, or to wake.
type Transition struct {
	At    time.Time // in the schedule's zone
	Wakes bool
}

// Parse reads a schedule of a user.
func Parse(s Schedule) (Times, error) {
	times := Times{Schedule: s}
	if len(s.Sleep)+len(s.Wake) == 0 {
		return times, fault.New(fault.Invalid, "The schedule has no times: give at least one to sleep or to wake, such as \"0 20 * * 1-5\" (minute, hour, *, *, weekdays)")
	}
	var err error
	if times.zone, err = zoneOf(s.Zone); err != nil {
		return times, err
	}
	for _, list := range []struct {
		name        string
		expressions []string
		wakes       bool
	}{{"sleep", s.Sleep, false}, {"wake", s.Wake, true}} {
		if len(list.expressions) > mostExpressions {
			return times, fault.New(fault.Invalid, "%s has %d expressions, and may have %d: one expression names several hours and weekdays, such as \"0 12,20 * * 1-5\"", list.name, len(list.expressions), mostExpressions)
		}
		for _, expression := range list.expressions {
			minutes, err := parseExpression(expression)
			if err != nil {
				return times, fault.New(fault.Invalid, "%s %s: %w", list.name, strconv.Quote(expression[:min(len(expression), longestExpression)]), err)
			}
			for _, minute := range minutes {
				times.week = append(times.week, moment{minute, list.wakes})
			}
		}
	}
	slices.SortFunc(times.week, func(a, b moment) int { return cmp.Compare(a.minute, b.minute) })
	for i, one := range times.week[1:] {
		if former := times.week[i]; one.minute-former.minute < apart {
			return times, tooClose(former, one)
		}
	}
	first, last := times.week[0], times.week[len(times.week)-1]
	if len(times.week) > 1 && first.minute+minutesOfWeek-last.minute < apart {
		return times, tooClose(last, first)
	}
	return times, nil
}

func tooClose(a, b moment) error {
	return fault.New(fault.Invalid, "The times %s and %s are less than an hour apart: leave one of them out, or move it", a, b)
}

// Stored reads a schedule of a row; false for none.
func Stored(row store.Hibernation) (times Times, found bool, err error) {
	if row.Schedule == "" {
		return times, false, nil
	}
	var schedule Schedule
	if err := json.Unmarshal([]byte(row.Schedule), &schedule); err != nil {
		return times, false, fmt.Errorf("read the schedule of environment %s: %w", row.EnvironmentID, err)
	}
	times, err = Parse(schedule)
	return times, err == nil, err
}

// Text is the schedule as it is stored.
func (t Times) Text() (string, error) {
	text, err := json.Marshal(t.Schedule)
	return string(text), err
}

func zoneOf(name string) (*time.Location, error) {
	if len(name) <= longestZone && name != "" && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, fault.New(fault.Invalid, "%s is no time zone: give a name of IANA's database, such as Europe/Berlin or UTC", strconv.Quote(name[:min(len(name), longestZone)]))
}

// parseExpression returns the minutes of the week of a cron expression.
func parseExpression(expression string) (minutes []int, err error) {
	if len(expression) > longestExpression {
		return nil, fmt.Errorf("it is longer than %d characters", longestExpression)
	}
	fields := strings.Fields(expression)
	if len(fields) != 5 {
		return nil, fmt.Errorf("it has %d fields, and needs five: minute, hours, *, *, weekdays, such as \"0 20 * * 1-5\"", len(fields))
	}
	minute, err := strconv.Atoi(fields[0])
	if err != nil || minute < 0 || minute > 59 {
		return nil, fmt.Errorf("minute %q is no number from 0 to 59", fields[0])
	}
	if fields[2] != "*" || fields[3] != "*" {
		return nil, fmt.Errorf("day and month are %q and %q, and must be *: a schedule is the same each week", fields[2], fields[3])
	}
	hours, err := parseList(fields[1], 24, hourOf)
	if err != nil {
		return nil, fmt.Errorf("hours %q: %w", fields[1], err)
	}
	days, err := parseList(fields[4], 7, weekdayOf)
	if err != nil {
		return nil, fmt.Errorf("weekdays %q: %w", fields[4], err)
	}
	for _, day := range days {
		for _, hour := range hours {
			minutes = append(minutes, (day*24+hour)*60+minute)
		}
	}
	return minutes, nil
}

// parseList reads numbers below a size: *, or numbers and ranges with commas. A range may go over the end: FRI-MON.
func parseList(text string, size int, numberOf func(string) (int, error)) ([]int, error) {
	has := make([]bool, size)
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if part == "*" {
			from, to, isRange = "0", strconv.Itoa(size-1), true
		}
		first, err := numberOf(from)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = numberOf(to); err != nil {
				return nil, err
			}
		}
		if first > last && last < 7 && size == 7 {
			last += size
		}
		if first > last {
			return nil, fmt.Errorf("the range %q ends before it begins", part)
		}
		for i := first; i <= last; i++ {
			has[i%size] = true
		}
	}
	var list []int
	for number, is := range has {
		if is {
			list = append(list, number)
		}
	}
	return list, nil
}

func hourOf(text string) (int, error) {
	hour, err := strconv.Atoi(text)
	if err != nil || hour < 0 || hour > 23 {
		return 0, fmt.Errorf("%q is no hour from 0 to 23", text)
	}
	return hour, nil
}

// weekdayOf reads a weekday: 0 to 7, of which 0 and 7 are Sunday, or the first three letters of its English name.
func weekdayOf(text string) (int, error) {
	day := slices.Index([]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, strings.ToLower(text))
	if day < 0 {
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 || number > 7 {
			return 0, fmt.Errorf("%q is no weekday: 0 to 7 (0 and 7 are Sunday), or SUN to SAT", text)
		}
		day = number
	}
	return day, nil
}

// reach is the number of days before and after a time in which each transition of a week occurs, also where clocks change.
const reach = 8

// around are the transitions around a time, in order.
func (t Times) around(now time.Time) (list []Transition) {
	year, month, day := now.In(t.zone).Date()
	for offset := -reach; offset <= reach; offset++ {
		date := time.Date(year, month, day+offset, 0, 0, 0, 0, time.UTC)
		for _, one := range t.week {
			if one.minute/minutesOfDay == int(date.Weekday()) {
				clock := date.Add(time.Duration(one.minute%minutesOfDay) * time.Minute)
				list = append(list, Transition{t.firstAt(clock), one.wakes})
			}
		}
	}
	return list
}

// firstAt is when the zone's clocks first show a time, which is written as one of UTC, or a later one. So a time that clocks skip is when they skip it, and one that they show
// twice is the first of both. Later times of a clock are never earlier in this.
func (t Times) firstAt(clock time.Time) time.Time {
	// No clock is more than a day ahead of UTC.
	for at := clock.Add(-26 * time.Hour).In(t.zone); ; {
		_, end := at.ZoneBounds()
		_, offset := at.Zone()
		shown := clock.Add(-time.Duration(offset) * time.Second).In(t.zone)
		if shown.Before(at) {
			shown = at
		}
		if end.IsZero() || shown.Before(end) {
			return shown
		}
		at = end
	}
}

// Last is the transition that was last, at a time or before.
func (t Times) Last(now time.Time) Transition {
	list := t.around(now)
	after := slices.IndexFunc(list, func(one Transition) bool { return one.At.After(now) })
	return list[after-1]
}

// Next is when the environment sleeps or wakes next after a time; false where the schedule has no such times.
func (t Times) Next(now time.Time, wakes bool) (time.Time, bool) {
	for _, one := range t.around(now) {
		if one.At.After(now) && one.Wakes == wakes {
			return one.At, true
		}
	}
	return time.Time{}, false
}

// NextOf is the next transition after a time.
func (t Times) NextOf(now time.Time) Transition {
	list := t.around(now)
	return list[slices.IndexFunc(list, func(one Transition) bool { return one.At.After(now) })]
}

// Due is how far a transition is due.
type Due string

// A transition that is not due is done, or was overruled by a user.
const (
	NotDue Due = ""
	IsDue  Due = "due"
	Late   Due = "late"   // it is due for an hour
	Missed Due = "missed" // it is not made any more
)

// Due is how far the last transition is due. Earlier ones are never made up for. One that is not after settled is done: that is when the schedule was set, or a user submitted the
// last task in the environment, whichever is later.
func (t Times) Due(now time.Time, state store.HibernationState, settled time.Time) (Transition, Due) {
	last := t.Last(now)
	late := now.Sub(last.At)
	switch {
	case !last.At.After(settled), last.Wakes && state == store.Awake, !last.Wakes && state == store.Asleep:
		return last, NotDue
	case !last.Wakes && late > LateSleep && state != store.Awake: // that it is unfinished is a finding of its own
		return last, NotDue
	case !last.Wakes && late > LateSleep:
		return last, Missed
	case late > lateWarning:
		return last, Late
	}
	return last, IsDue
}

// Overtaken is true if a task of the schedule that is to hibernate, and begins now, is to stop nothing: a time to wake came meanwhile, or the environment, which is awake, is
// no longer to sleep. One that has stopped servers already ends what it began.
func (t Times) Overtaken(now time.Time, state store.HibernationState, settled time.Time) bool {
	last, due := t.Due(now, state, settled)
	return last.Wakes || state == store.Awake && (due == NotDue || due == Missed)
}
