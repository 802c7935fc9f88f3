import { Icon } from '@patternfly/react-core';
import { ExclamationCircleIcon, ExclamationTriangleIcon, InfoCircleIcon } from '@patternfly/react-icons';

import type { Schema } from '../api/client';
import { showAge, showTime } from '../api/time';
import { useLanguage } from '../text';

const looks = {
  info: { status: 'info', icon: <InfoCircleIcon /> },
  warning: { status: 'warning', icon: <ExclamationTriangleIcon /> },
  error: { status: 'danger', icon: <ExclamationCircleIcon /> },
} as const;

/** A component's last report, and its time. */
export function LastReport({ report }: { report: Schema<'Report'> | null | undefined }) {
  const { text, language } = useLanguage();
  if (!report) return <>{text.components.noReport}</>;
  const level = report.level ?? 'info';
  return (
    <span>
      <Icon status={looks[level].status} title={text.components.levels[level]} isInline>
        {looks[level].icon}
      </Icon>{' '}
      <span className="pf-v6-screen-reader">{text.components.levels[level]}</span>
      {report.text} <small title={showTime(report.created, language)}>{showAge(report.created, language)}</small>
    </span>
  );
}
