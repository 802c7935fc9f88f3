import { Content } from '@patternfly/react-core';
import { memo, useEffect, useMemo, useRef, useState } from 'react';

import type { Report } from '../api/follow';
import { parseTime } from '../api/time';
import { useLanguage } from '../text';
import { pieces } from './log';

/** How many lines are made or left out together. */
const piece = 100;

/** How high a line is before it was seen. */
const guess = 29;

interface Props {
  reports: Report[];
  names: Map<string, string>;
  /** Stays at the end while lines come, until the user scrolls up. */
  follows?: boolean;
}

/** The lines of a log. Only lines near the visible ones are in the page. */
export function Lines({ reports, names, follows: following = false }: Props) {
  const { text } = useLanguage();
  const list = useRef<HTMLDivElement>(null);
  const [follows, setFollows] = useState(following);
  const cut = useMemo(() => pieces(reports, piece), [reports]);
  useEffect(() => {
    if (list.current && follows) list.current.scrollTop = list.current.scrollHeight;
  }, [reports, follows]);
  return (
    <div
      className="burano-log"
      ref={list}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label={text.deployments.log}
      onScroll={(event) => {
        const box = event.currentTarget;
        if (following) setFollows(box.scrollHeight - box.scrollTop - box.clientHeight < 40);
      }}
    >
      {cut.map((lines, i) => (
        <Piece key={i} lines={lines} names={names} near={cut.length <= 2 || i === cut.length - 1} />
      ))}
    </div>
  );
}

function Piece({ lines, names, near }: { lines: Report[]; names: Map<string, string>; near: boolean }) {
  const box = useRef<HTMLOListElement>(null);
  const [seen, setSeen] = useState(near);
  const [height, setHeight] = useState(lines.length * guess);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (!entry) return;
        // A removed piece keeps its height.
        if (!entry.isIntersecting && element.childElementCount > 0) setHeight(element.offsetHeight);
        setSeen(entry.isIntersecting);
      },
      { root: element.parentElement, rootMargin: '1200px' },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <ol ref={box} style={seen ? undefined : { height }}>
      {seen && lines.map((report) => <Line key={report.id} report={report} name={names.get(report.entity_id ?? '') ?? ''} />)}
    </ol>
  );
}

const Line = memo(function Line({ report, name }: { report: Report; name: string }) {
  const { text, language } = useLanguage();
  const time = useMemo(() => new Intl.DateTimeFormat(language, { timeStyle: 'medium' }), [language]);
  const level = report.level ?? 'info';
  return (
    <li className={`burano-log-${level}`}>
      <time dateTime={report.created}>{time.format(parseTime(report.created ?? ''))}</time>
      <span>{text.components.levels[level]}</span>
      <span>
        {name && <strong>{name}: </strong>}
        {report.text}
        {report.details && <Content component="pre">{report.details}</Content>}
      </span>
    </li>
  );
});
