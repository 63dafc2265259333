# dates: formats
date_format(«TIMESTAMP '2024-02-29 13:04:05.678901'», 'yyyy-MM-dd HH:mm:ss')
date_format(«TIMESTAMP '2024-02-29 13:04:05.678901'», 'yyyy-MM-dd HH:mm:ss.SSS')
date_format(«TIMESTAMP '2024-02-29 13:04:05.678901'», 'HH:mm:ss.SSSSSS')
date_format(«TIMESTAMP '2024-02-29 13:04:05.6'», 'HH:mm:ss.S')
date_format(«TIMESTAMP '2024-02-29 03:04:05'», 'h:mm a')
date_format(«TIMESTAMP '2024-02-29 13:04:05'», 'hh:mm a')
date_format(«TIMESTAMP '2024-02-29 00:04:05'», 'h K k H')
date_format(«DATE '2024-02-09'», 'd/M/yy')
date_format(«DATE '2024-02-09'», 'EEEE, d. MMMM yyyy')
date_format(«DATE '2024-02-09'», 'E MMM D DDD')
date_format(«DATE '2024-02-09'», 'yyyyMM')
date_format(«DATE '0099-02-09'», 'yyyy')
date_format(«DATE '2024-02-09'», 'y')
date_format(«DATE '2024-02-09'», 'Q')
date_format(«DATE '2024-02-09'», "'Q'Q yyyy")
date_format(«DATE '2024-02-09'», "yyyy'T'MM''dd")
date_format(«DATE '2024-02-09'», 'w')
date_format(«DATE '2024-02-09'», 'u')
date_format(«TIMESTAMP '2024-02-29 13:04:05'», 'z')
date_format(«TIMESTAMP '2024-02-29 13:04:05'», 'XXX')
date_format(«TIMESTAMP '2024-02-29 13:04:05'», "yyyy-MM-dd'T'HH:mm:ss.SSSXXX")
date_format(«'2024-02-29'», 'dd.MM.yyyy')
date_format(«CAST(NULL AS DATE)», 'yyyy')
date_format(«DATE '2024-02-09'», 'G')
date_format(«DATE '2024-02-09'», '100%')
to_date(«'2024-02-29'»)
to_date(«'2024-2-9'»)
to_date(«'2024-02'»)
to_date(«'2024'»)
to_date(«'  2024-02-29  '»)
to_date(«'2024-02-29T12:00:00'»)
to_date(«'2024-02-29 12:00:00'»)
to_date(«'20240229'»)
to_date(«'2024-02-30'»)
to_date(«''»)
to_date(«'nonsense'»)
to_date(«'29.02.2024'», 'dd.MM.yyyy')
to_date(«'9.2.2024'», 'd.M.yyyy')
to_date(«'09.02.2024'», 'd.M.yyyy')
to_date(«'9.2.2024'», 'dd.MM.yyyy')
to_date(«'20240229'», 'yyyyMMdd')
to_date(«'240229'», 'yyMMdd')
to_date(«'690229'», 'yyMMdd')
to_date(«'29 Feb 2024'», 'dd MMM yyyy')
to_date(«'29 February 2024'», 'dd MMMM yyyy')
to_date(«'29 feb 2024'», 'dd MMM yyyy')
to_date(«'2024-02-30'», 'yyyy-MM-dd')
to_date(«'2024-02-29 tail'», 'yyyy-MM-dd')
to_date(«' 2024-02-29'», 'yyyy-MM-dd')
to_date(«'2024-060'», 'yyyy-DDD')
to_date(«'02/2024'», 'MM/yyyy')
to_date(«'2024'», 'yyyy')
to_date(«''», 'yyyy-MM-dd')
to_date(«CAST(NULL AS STRING)», 'yyyy-MM-dd')
to_date(«'0000-00-00'»)
try_to_date(«'0000-00-00'»)
to_timestamp(«'2024-02-29 13:04:05'»)
to_timestamp(«'2024-02-29T13:04:05Z'»)
to_timestamp(«'2024-02-29T13:04:05.123+02:00'»)
to_timestamp(«'2024-02-29 13:04'»)
to_timestamp(«'2024-02-29'»)
to_timestamp(«'2024-02-29 25:00:00'»)
to_timestamp(«'2024-02-29 13:04:05.1234567'»)
to_timestamp(«'2024-02-29 13:04:05 Europe/Berlin'»)
to_timestamp(«'29/02/2024 1:04 PM'», 'dd/MM/yyyy h:mm a')
to_timestamp(«'2024-02-29 13:04:05.123'», 'yyyy-MM-dd HH:mm:ss.SSS')
to_timestamp(«'2024-02-29 13:04:05.12'», 'yyyy-MM-dd HH:mm:ss.SSS')
to_timestamp(«'2024-02-29T13:04:05'», "yyyy-MM-dd'T'HH:mm:ss")
to_timestamp(«'20240229130405'», 'yyyyMMddHHmmss')
to_timestamp(«'2024-02-29 24:00:00'», 'yyyy-MM-dd HH:mm:ss')
to_timestamp(«'bad'», 'yyyy-MM-dd')
try_to_timestamp(«'bad'», 'yyyy-MM-dd')
try_to_timestamp(«'bad'»)
try_to_timestamp(«'2024-02-29 13:04:05'»)
to_timestamp(«DATE '2024-02-29'»)
to_date(«TIMESTAMP '2024-02-29 23:59:59'»)
to_timestamp_ntz(«'2024-02-29 13:04:05'»)
to_timestamp_ltz(«'2024-02-29 13:04:05'»)
to_unix_timestamp(«'2024-02-29 00:00:00'», 'yyyy-MM-dd HH:mm:ss')
unix_timestamp(«'2024-02-29 13:04:05'»)
unix_timestamp(«'2024-02-29'», 'yyyy-MM-dd')
unix_timestamp(«'nope'», 'yyyy-MM-dd')
unix_timestamp(«TIMESTAMP '1969-12-31 23:59:59.5'»)
unix_timestamp(«DATE '2024-02-29'»)
from_unixtime(«1709211845L»)
from_unixtime(«-1L»)
from_unixtime(«1709211845L», 'yyyy-MM-dd')
from_unixtime(«1709211845L», "yyyy/MM/dd'T'HH")
unix_seconds(«TIMESTAMP '1969-12-31 23:59:59.5'»)
unix_millis(«TIMESTAMP '2024-02-29 13:04:05.678901'»)
unix_millis(«TIMESTAMP '1969-12-31 23:59:59.9995'»)
unix_micros(«TIMESTAMP '2024-02-29 13:04:05.678901'»)
unix_date(«DATE '2024-02-29'»)
date_from_unix_date(«19782»)
timestamp_seconds(«1709211845»)
timestamp_seconds(«1709211845.5D»)
timestamp_seconds(«CAST(1709211845.123 AS DECIMAL(14,3))»)
timestamp_millis(«1709211845678L»)
timestamp_micros(«1709211845678901L»)
# dates: arithmetic
date_add(«DATE '2024-02-28'», «2»)
date_add(«'2024-02-28'», «2»)
date_add(«DATE '2024-02-28'», «-60»)
date_add(«DATE '2024-02-28'», «1.5»)
date_add(«TIMESTAMP '2024-02-28 12:00:00'», «1»)
date_sub(«DATE '2024-03-01'», «1»)
dateadd(«DATE '2024-02-28'», «2»)
dateadd(DAY, «2», «DATE '2024-02-28'»)
dateadd(MONTH, «1», «DATE '2024-01-31'»)
dateadd(YEAR, «1», «TIMESTAMP '2024-02-29 12:00:00'»)
date_add(HOUR, «5», «TIMESTAMP '2024-02-29 12:00:00'»)
timestampadd(HOUR, «-5», «TIMESTAMP '2024-02-29 12:00:00'»)
timestampadd(MINUTE, «90», «TIMESTAMP '2024-02-29 12:00:00'»)
timestampadd(SECOND, «90», «TIMESTAMP '2024-02-29 12:00:00'»)
timestampadd(MICROSECOND, «90», «TIMESTAMP '2024-02-29 12:00:00'»)
timestampadd(WEEK, «1», «TIMESTAMP '2024-02-29 12:00:00'»)
timestampadd(QUARTER, «1», «TIMESTAMP '2023-11-30 12:00:00'»)
timestampadd(DAY, «1», «DATE '2024-02-29'»)
timestampdiff(DAY, «TIMESTAMP '2024-02-28 23:00:00'», «TIMESTAMP '2024-03-01 22:00:00'»)
timestampdiff(HOUR, «TIMESTAMP '2024-02-28 23:59:00'», «TIMESTAMP '2024-02-29 01:58:00'»)
timestampdiff(MINUTE, «TIMESTAMP '2024-02-28 23:59:30'», «TIMESTAMP '2024-02-29 00:01:00'»)
timestampdiff(SECOND, «TIMESTAMP '2024-02-28 23:59:30.9'», «TIMESTAMP '2024-02-28 23:59:32.1'»)
timestampdiff(MONTH, «TIMESTAMP '2024-01-31 00:00:00'», «TIMESTAMP '2024-02-29 00:00:00'»)
timestampdiff(MONTH, «DATE '2024-01-15'», «DATE '2024-03-14'»)
timestampdiff(YEAR, «DATE '2020-02-29'», «DATE '2024-02-28'»)
timestampdiff(QUARTER, «DATE '2023-12-31'», «DATE '2024-01-01'»)
timestampdiff(WEEK, «DATE '2024-01-01'», «DATE '2024-01-14'»)
timestampdiff(DAY, «DATE '2024-03-01'», «DATE '2024-02-28'»)
datediff(DAY, «DATE '2024-02-28'», «DATE '2024-03-01'»)
datediff(«DATE '2024-03-01'», «DATE '2024-02-28'»)
datediff(«'2024-03-01'», «'2024-02-28'»)
datediff(«TIMESTAMP '2024-03-01 01:00:00'», «TIMESTAMP '2024-02-29 23:00:00'»)
date_diff(«DATE '2024-03-01'», «DATE '2024-02-28'»)
add_months(«DATE '2024-01-31'», «1»)
add_months(«DATE '2024-02-29'», «-12»)
add_months(«DATE '2023-02-28'», «12»)
months_between(«DATE '2024-03-31'», «DATE '2024-02-29'»)
months_between(«DATE '2024-03-15'», «DATE '2024-01-01'»)
months_between(«TIMESTAMP '1997-02-28 10:30:00'», «TIMESTAMP '1996-10-30 00:00:00'»)
months_between(«TIMESTAMP '1997-02-28 10:30:00'», «TIMESTAMP '1996-10-30 00:00:00'», false)
months_between(«DATE '2024-01-15'», «DATE '2024-03-15'»)
last_day(«DATE '2024-02-10'»)
last_day(«'2023-02-10'»)
last_day(«TIMESTAMP '2024-12-10 23:00:00'»)
next_day(«DATE '2024-02-29'», 'Mon')
next_day(«DATE '2024-02-29'», 'THURSDAY')
next_day(«DATE '2024-02-29'», 'fr')
next_day(«DATE '2024-02-29'», 'xx')
date_trunc('YEAR', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('quarter', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('MM', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('mon', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('week', «TIMESTAMP '2024-09-01 13:04:05.678'»)
date_trunc('DD', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('HOUR', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('minute', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('second', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_trunc('millisecond', «TIMESTAMP '2024-08-29 13:04:05.678901'»)
date_trunc('month', «DATE '2024-08-29'»)
date_trunc('nope', «DATE '2024-08-29'»)
date_trunc('decade', «DATE '2024-08-29'»)
trunc(«DATE '2024-08-29'», 'year')
trunc(«DATE '2024-08-29'», 'YY')
trunc(«DATE '2024-08-29'», 'Q')
trunc(«DATE '2024-08-29'», 'quarter')
trunc(«DATE '2024-08-29'», 'MM')
trunc(«DATE '2024-08-29'», 'month')
trunc(«DATE '2024-09-01'», 'week')
trunc(«DATE '2024-08-29'», 'day')
trunc(«'2024-08-29'», 'MM')
trunc(«TIMESTAMP '2024-08-29 12:00:00'», 'MM')
year(«DATE '2024-08-29'»)
year(«'2024-08-29'»)
year(«TIMESTAMP '2024-08-29 12:00:00'»)
quarter(«DATE '2024-08-29'»)
month(«DATE '2024-08-29'»)
day(«DATE '2024-08-29'»)
dayofmonth(«DATE '2024-08-29'»)
dayofweek(«DATE '2024-09-01'»)
dayofweek(«DATE '2024-08-31'»)
weekday(«DATE '2024-09-01'»)
dayofyear(«DATE '2024-12-31'»)
weekofyear(«DATE '2024-12-30'»)
weekofyear(«DATE '2021-01-03'»)
hour(«TIMESTAMP '2024-08-29 13:04:05.678'»)
minute(«TIMESTAMP '2024-08-29 13:04:05.678'»)
second(«TIMESTAMP '2024-08-29 13:04:05.678'»)
hour(«'2024-08-29 13:04:05'»)
hour(«DATE '2024-08-29'»)
dayname(«DATE '2024-08-29'»)
monthname(«DATE '2024-08-29'»)
extract(YEAR FROM «DATE '2024-12-30'»)
extract(YEAROFWEEK FROM «DATE '2024-12-30'»)
extract(WEEK FROM «DATE '2024-12-30'»)
extract(DOW FROM «DATE '2024-09-01'»)
extract(DAYOFWEEK FROM «DATE '2024-09-01'»)
extract(DAYOFWEEK_ISO FROM «DATE '2024-09-01'»)
extract(DOY FROM «DATE '2024-09-01'»)
extract(MONTH FROM «TIMESTAMP '2024-08-29 13:04:05.678'»)
extract(HOUR FROM «TIMESTAMP '2024-08-29 13:04:05.678'»)
extract(SECOND FROM «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_part('dow', «DATE '2024-09-01'»)
date_part('seconds', «TIMESTAMP '2024-08-29 13:04:05.678'»)
date_part('month', «DATE '2024-09-01'»)
date_part('week', «DATE '2024-09-01'»)
date_part('quarter', «DATE '2024-09-01'»)
datepart('year', «DATE '2024-09-01'»)
make_date(«2024», «2», «29»)
make_date(«2023», «2», «29»)
make_timestamp(«2024», «2», «29», «13», «4», «5.678»)
make_timestamp(«2024», «2», «30», «13», «4», «5»)
make_timestamp_ntz(«2024», «2», «29», «13», «4», «5»)
from_utc_timestamp(«TIMESTAMP '2024-07-01 12:00:00'», 'Europe/Berlin')
from_utc_timestamp(«'2024-07-01 12:00:00'», 'Europe/Berlin')
to_utc_timestamp(«TIMESTAMP '2024-07-01 12:00:00'», 'Europe/Berlin')
to_utc_timestamp(«TIMESTAMP '2024-01-01 12:00:00'», 'America/New_York')
from_utc_timestamp(«TIMESTAMP '2024-01-01 12:00:00'», 'Nowhere/At_All')
from_utc_timestamp(«TIMESTAMP '2024-07-01 12:00:00'», '+02:00')
convert_timezone('Europe/Berlin', 'UTC', «TIMESTAMP_NTZ '2024-07-01 12:00:00'»)
«DATE '2024-02-28'» + «2»
«DATE '2024-02-28'» - «2»
«DATE '2024-02-28'» + INTERVAL 1 DAY
«DATE '2024-01-31'» + INTERVAL 1 MONTH
«DATE '2024-02-29'» - INTERVAL 1 YEAR
«DATE '2024-02-28'» + INTERVAL '2' DAY
«DATE '2024-02-28'» + INTERVAL '1-2' YEAR TO MONTH
«DATE '2024-02-28'» + INTERVAL 5 HOURS
«TIMESTAMP '2024-02-28 12:00:00'» + INTERVAL 5 HOURS
«TIMESTAMP '2024-02-28 12:00:00'» - INTERVAL 30 MINUTES
«TIMESTAMP '2024-02-28 12:00:00'» + INTERVAL 1 DAY 2 HOURS
«TIMESTAMP '2024-02-28 12:00:00'» + INTERVAL '1 02:03:04' DAY TO SECOND
«TIMESTAMP '2024-02-28 12:00:00'» + INTERVAL '10' MINUTE
«TIMESTAMP '2024-01-31 12:00:00'» + INTERVAL 1 MONTH
«TIMESTAMP '2024-02-28 12:00:00'» + INTERVAL 1 WEEK
«TIMESTAMP '2024-02-28 12:00:00'» + make_interval(0, 0, 0, 1)
«TIMESTAMP '2024-02-28 12:00:00'» + make_dt_interval(1, 2)
«TIMESTAMP '2024-03-01 12:00:00'» - «TIMESTAMP '2024-02-28 12:00:00'» > INTERVAL 1 DAY
«DATE '2024-03-01'» - «DATE '2024-02-28'»
«DATE '2024-03-01'» > «'2024-02-28'»
«DATE '2024-03-01'» = «TIMESTAMP '2024-03-01 00:00:00'»
«TIMESTAMP '2024-03-01 12:00:00'» > '2024-03-01'
CAST(«'2024-02-29'» AS DATE)
CAST(«'2024-02-29 10:00:00'» AS DATE)
CAST(«'29.02.2024'» AS DATE)
CAST(«TIMESTAMP '2024-02-29 23:00:00'» AS DATE)
CAST(«DATE '2024-02-29'» AS TIMESTAMP)
CAST(«DATE '2024-02-29'» AS STRING)
CAST(«TIMESTAMP '2024-02-29 23:00:00'» AS STRING)
CAST(«TIMESTAMP '2024-02-29 23:00:00.120'» AS STRING)
CAST(«TIMESTAMP_NTZ '2024-02-29 23:00:00.120'» AS STRING)
CAST(«TIMESTAMP '2024-02-29 23:00:00.5'» AS BIGINT)
CAST(«TIMESTAMP '2024-02-29 23:00:00.5'» AS DOUBLE)
CAST(«TIMESTAMP '1969-12-31 23:59:59.5'» AS BIGINT)
CAST(«1709211845L» AS TIMESTAMP)
CAST(«1709211845» AS TIMESTAMP)
CAST(«1.5D» AS TIMESTAMP)
CAST(«5» AS DATE)
CAST(«'2024-02-29T10:00:00+01:00'» AS TIMESTAMP)
CAST(«'2024-02-29 10:00:00'» AS TIMESTAMP_NTZ)
CAST(«TIMESTAMP '2024-02-29 23:00:00'» AS TIMESTAMP_NTZ)
date(«'2024-02-29'»)
timestamp(«'2024-02-29 10:00:00'»)
date_format(current_date(), 'yyyy') = year(current_date())
current_timezone()
window(«TIMESTAMP '2024-02-29 13:04:05'», '10 minutes').start
# strings
substring(«'abcdef'», «2», «3»)
substring(«'abcdef'», «0», «3»)
substring(«'abcdef'», «-3», «2»)
substring(«'abcdef'», «-10», «5»)
substring(«'abcdef'», «2»)
substring(«'abcdef'», «-2»)
substring(«'abcdef'», «0»)
substring(«'abcdef'», «2», «-1»)
substring(«'abcdef'», «7», «1»)
substring(«'äöü€x'», «2», «2»)
substring('Spark SQL' FROM 5 FOR 3)
substr(«'abcdef'», «0», «2»)
substr(«'abcdef'», «-4», «2»)
substring_index(«'www.apache.org'», '.', 2)
substring_index(«'www.apache.org'», '.', -1)
substring_index(«'www.apache.org'», '.', 0)
substring_index(«'www.apache.org'», 'x', 1)
instr(«'SparkSQL'», «'SQL'»)
instr(«'SparkSQL'», «'x'»)
instr(«'SparkSQL'», «''»)
locate(«'a'», «'banana'»)
locate(«'a'», «'banana'», «3»)
locate(«'a'», «'banana'», «0»)
locate(«'x'», «'banana'», «1»)
position(«'a'» IN «'banana'»)
position(«'n'», «'banana'», «4»)
lpad(«'hi'», «5», «'xy'»)
lpad(«'hello'», «3», «'x'»)
lpad(«'hi'», «5»)
rpad(«'hi'», «5», «'xy'»)
rpad(«'hello'», «3», «'x'»)
rpad(«'hi'», «4»)
lpad(«'hi'», «5», «''»)
lpad(«'hi'», «-1», «'x'»)
trim(«'  a b  '»)
ltrim(«'  a b  '»)
rtrim(«'  a b  '»)
trim(«'\t a \n'»)
trim(BOTH 'x' FROM «'xxaxx'»)
trim(LEADING 'xy' FROM «'xyxaxy'»)
trim(TRAILING 'x' FROM «'xxaxx'»)
ltrim(«'x'», «'xxa'»)
rtrim(«'x'», «'axx'»)
btrim(«'  a  '»)
btrim(«'xxaxx'», «'x'»)
split(«'oneAtwoBthreeC'», '[ABC]')
split(«'oneAtwoBthreeC'», '[ABC]', 2)
split(«'oneAtwoBthreeC'», '[ABC]', -1)
split(«'oneAtwoBthreeC'», '[ABC]', 0)
split(«'a,b,c'», ',')
split(«'a,b,c'», ',')[0]
split(«'a,b,c'», ',')[3]
split(«'a.b.c'», '.')
split(«'a.b.c'», '\\.')
split(«'a|b|c'», '[|]')
split(«'a|b'», '|')
split(«''», ',')
split(«'abc'», '')
split(«CAST(NULL AS STRING)», ',')
split_part(«'11.12.13'», «'.'», «3»)
split_part(«'11.12.13'», «'.'», «-1»)
split_part(«'11.12.13'», «'.'», «5»)
split_part(«'11.12.13'», «'.'», «0»)
regexp_replace(«'100-200'», '(\\d+)', 'num')
regexp_replace(«'100-200'», '(\\d+)-(\\d+)', '$2-$1')
regexp_replace(«'a.b.c'», '[.]', '')
regexp_replace(«'abc'», 'B', 'x')
regexp_replace(«'abc'», '(?i)B', 'x')
regexp_replace(«'aaa'», 'a', 'b', 2)
regexp_replace(«'line1\nline2'», '^line', 'x')
regexp_replace(«'abc'», 'b*', '-')
regexp_replace(«'foo bar'», '\\s+', ' ')
regexp_replace(«'x'», '(?<=x)', 'y')
regexp_replace(«'aXbX'», 'X', '\\$')
regexp_extract(«'100-200'», '(\\d+)-(\\d+)', 1)
regexp_extract(«'100-200'», '(\\d+)-(\\d+)', 2)
regexp_extract(«'100-200'», '(\\d+)-(\\d+)', 0)
regexp_extract(«'100-200'», '(\\d+)-(\\d+)')
regexp_extract(«'100-200'», '(\\d+)-(\\d+)', 3)
regexp_extract(«'foo'», '(\\d+)', 1)
regexp_extract(«'ab'», '(a)|(b)', 2)
regexp_extract(«'abc'», 'b')
regexp_extract_all(«'100-200, 300-400'», '(\\d+)-(\\d+)', 1)
regexp_extract_all(«'100-200, 300-400'», '(\\d+)-(\\d+)')
regexp_extract_all(«'a1b22'», '[0-9]+', 0)
regexp_count(«'Steven Jones and Stephen Smith'», 'Ste(v|ph)en')
regexp_instr(«'user@spark.apache.org'», '@[^.]*')
regexp_substr(«'Steven Jones and Stephen Smith'», 'Ste(v|ph)en')
regexp_substr(«'abc'», 'x')
regexp_like(«'abc'», «'b'»)
regexp(«'abc'», '^b')
rlike(«'abc'», 'c$')
«'abc'» RLIKE 'b'
«'abc'» NOT RLIKE 'b'
«'a\nc'» RLIKE 'a.c'
«'abc\n'» RLIKE 'c$'
«'abc'» REGEXP '^a.c$'
«'123'» RLIKE '^\\d+$'
«'abc'» RLIKE '(?=b)'
«'äb'» RLIKE '^\\w+$'
«'a b'» RLIKE '\\h'
«'abc'» LIKE 'a%'
«'abc'» LIKE '_b_'
«'a%c'» LIKE 'a\\%c'
«'abc'» LIKE 'a\\%c'
«'a_c'» LIKE 'a!_c' ESCAPE '!'
«'abc'» LIKE 'A%'
«'abc'» ILIKE 'A%'
«'abc'» NOT LIKE 'x%'
«'a\nc'» LIKE 'a%c'
«'abc'» LIKE ANY ('a%', 'x%')
«'abc'» LIKE ALL ('a%', '%c')
«CAST(NULL AS STRING)» LIKE 'a'
concat(«'a'», «'b'», «'c'»)
concat(«'a'», «CAST(NULL AS STRING)»)
concat(«'a'», «1», «2.50», «true»)
concat(«'a'», «DATE '2024-01-01'»)
concat(«1.0D», «'x'»)
concat(«TIMESTAMP '2024-01-01 00:00:00'», 'x')
concat(«array(1, 2)», «array(3)»)
concat()
«'a'» || «'b'»
«'a'» || «1»
«'a'» || «CAST(NULL AS STRING)»
«array(1)» || «array(2)»
concat_ws('-', «'a'», «CAST(NULL AS STRING)», «'b'»)
concat_ws('-', «array('a', NULL, 'b')», «'c'»)
concat_ws(',', «array('x', 'y')»)
concat_ws('-')
concat_ws(CAST(NULL AS STRING), 'a', 'b')
initcap(«'sPark sql-is FUN'»)
initcap(«'a b  c'»)
translate(«'AaBbCc'», 'abc', '123')
translate(«'translate'», 'rnlt', '123')
translate(«'aab'», 'aa', '12')
overlay('Spark SQL' PLACING '_' FROM 6)
overlay('Spark SQL' PLACING 'CORE' FROM 7)
overlay(«'Spark SQL'», «'ANSI '», «7», «0»)
overlay(«'Spark SQL'», «'_'», «6»)
format_string(«'Hello %d %s'», «100», «'days'»)
format_string('%05.2f|%-5s|%x', «3.14159D», «'ab'», «255»)
format_string('%s', «CAST(NULL AS STRING)»)
format_string('%,d', «1234567»)
printf('%d%%', «5»)
format_number(«12332.123456D», «4»)
format_number(«1234567»  , «0»)
format_number(«12332.5D», '##################.###')
left(«'Spark SQL'», «3»)
left(«'abc'», «-1»)
right(«'Spark SQL'», «3»)
right(«'abc'», «0»)
right(«'abc'», «-2»)
repeat(«'ab'», «3»)
repeat(«'ab'», «-1»)
reverse(«'abc'»)
reverse(«array(1, 2, 3)»)
length(«'äöü '»)
char_length(«'abc'»)
character_length(«'abc'»)
octet_length(«'äb'»)
bit_length(«'äb'»)
length(«X'1C2D'»)
len(«'abc'»)
ascii(«'abc'»)
ascii(«''»)
ascii(«'ä'»)
ascii(«'€'»)
chr(«65»)
char(«97»)
chr(«256 + 65»)
chr(«0»)
chr(«-1»)
base64(«'Spark SQL'»)
base64(«CAST('ab' AS BINARY)»)
unbase64(«'U3BhcmsgU1FM'»)
hex(«17»)
hex(«-1»)
hex(«'Spark SQL'»)
hex(«X'0aff'»)
unhex(«'537061726B'»)
unhex(«'5'»)
unhex(«'zz'»)
md5(«'Spark'»)
md5(«CAST(NULL AS STRING)»)
sha(«'Spark'»)
sha1(«'Spark'»)
sha2(«'Spark'», 256)
sha2(«'Spark'», 0)
sha2(«'Spark'», 512)
sha2(«'Spark'», 384)
sha2(«'Spark'», 5)
crc32(«'Spark'»)
hash(«'Spark'», «1»)
xxhash64(«'Spark'», «1»)
soundex(«'Miller'»)
levenshtein(«'kitten'», «'sitting'»)
levenshtein(«'kitten'», «'sitting'», «2»)
encode(«'abc'», 'utf-8')
decode(«X'616263'», 'utf-8')
encode(«'abc'», 'utf-16')
replace(«'ABCabc'», «'abc'», «'DEF'»)
replace(«'ABCabc'», «'abc'»)
replace(«'abc'», «''», «'x'»)
upper(«'straße äöü'»)
lower(«'ÄÖÜ İ'»)
ucase(«'abc'»)
lcase(«'ABC'»)
contains(«'Spark SQL'», «'Spark'»)
contains(«'Spark SQL'», «CAST(NULL AS STRING)»)
startswith(«'Spark SQL'», «'Spark'»)
endswith(«'Spark SQL'», «'SQL'»)
endswith(«'Spark SQL'», «''»)
space(«3»)
elt(«1», «'scala'», «'java'»)
elt(«2», «'a'», «'b'»)
elt(«3», «'a'», «'b'»)
find_in_set(«'ab'», «'abc,b,ab,c,def'»)
find_in_set(«'a,b'», «'a,b'»)
parse_url(«'http://spark.apache.org/path?query=1'», 'HOST')
parse_url(«'http://spark.apache.org/path?query=1'», 'QUERY', 'query')
url_encode(«'a b&c'»)
url_decode(«'a+b%26c'»)
to_number(«'454'», '999')
to_char(«454», '999')
to_char(«DATE '2024-02-29'», 'yyyy')
mask(«'AbCD123-@$#'»)
luhn_check(«'8112189876'»)
sentences(«'Hi there! Good morning.'»)
typeof(«1»)
«'abc'» = «'ABC'»
«'a'» < «'B'»
«'a'» == «'a'»
'it''s'
'a\tb\\c\'d'
"double"
r'raw\n'
'con' 'cat'
'\u00e4'
'%\%'
X'1F'
length('a\nb')
to_binary(«'616263'», 'hex')
isnull(«CAST(NULL AS STRING)»)
nullif(«''», '')
lower(NULL)
string(«1.0D»)
string(«1e20D»)
string(«1.0E-5D»)
string(«123456789.125D»)
string(«CAST('NaN' AS DOUBLE)»)
string(«CAST('Infinity' AS DOUBLE)»)
string(«CAST(1.5 AS FLOAT)»)
string(«true»)
string(«12.30»)
string(«X'616263'»)
string(«array(1, NULL, 3)»)
string(«map('a', 1)»)
string(«named_struct('a', 1, 'b', 'x')»)
string(«array('a', 'b')»)
# JSON
get_json_object(«'{"a":{"b":[1,"two"]}}'», '$.a.b[1]')
get_json_object(«'{"a":{"b":[1,"two"]}}'», '$.a')
get_json_object(«'{"a":1.50}'», '$.a')
get_json_object(«'{"a":true}'», '$.a')
get_json_object(«'{"a":null}'», '$.a')
get_json_object(«'{"a":1}'», '$.b')
get_json_object(«'{"a":"x\\ty"}'», '$.a')
get_json_object(«'not json'», '$.a')
get_json_object(«'{"a b":1}'», "$['a b']")
get_json_object(«'{"a":[{"b":1},{"b":2}]}'», '$.a[*].b')
get_json_object(«'{"a":[1,2]}'», '$.a[*]')
get_json_object(«'[1,2]'», '$[0]')
get_json_object(«'{"a":1}'», '$')
get_json_object(«'{"a": 1, "b": 2}'», '$')
get_json_object(«'{"a":1}'», 'a')
get_json_object(«'{"a":{"b":1}}'», '$.a.b')
get_json_object(«'{"a":""}'», '$.a')
get_json_object(«'{"A":1}'», '$.a')
get_json_object(«''», '$.a')
from_json(«'{"a":1,"b":"x"}'», 'a INT, b STRING')
from_json(«'{"a":1,"b":"x"}'», 'STRUCT<a: INT, b: STRING>')
from_json(«'{"a":1}'», 'a INT, b STRING').a
from_json(«'{"a":1}'», 'a INT, b STRING').b
from_json(«'{"a":"1"}'», 'a INT')
from_json(«'{"a":1}'», 'a STRING')
from_json(«'{"a":{"x":1}}'», 'a STRING')
from_json(«'{"a":1.5}'», 'a INT')
from_json(«'{"a":1.5}'», 'a DOUBLE')
from_json(«'{"a":1.50}'», 'a DECIMAL(10,2)')
from_json(«'{"a":"1.50"}'», 'a DECIMAL(10,2)')
from_json(«'{"a":true}'», 'a BOOLEAN')
from_json(«'{"a":"2024-02-29"}'», 'a DATE')
from_json(«'{"a":"2024-02-29T13:04:05Z"}'», 'a TIMESTAMP')
from_json(«'{"a":"2024-02-29 13:04:05"}'», 'a TIMESTAMP')
from_json(«'{"a":[1,2]}'», 'a ARRAY<INT>')
from_json(«'{"a":[{"b":1},{"b":null}]}'», 'a ARRAY<STRUCT<b: BIGINT>>')
from_json(«'{"a":{"k":1}}'», 'a MAP<STRING, INT>')
from_json(«'[1,2]'», 'ARRAY<INT>')
from_json(«'{"k":1}'», 'MAP<STRING, INT>')
from_json(«'[{"a":1}]'», 'ARRAY<STRUCT<a: INT>>')
from_json(«'[{"a":1}]'», 'a INT')
from_json(«'bad'», 'a INT')
from_json(«''», 'a INT')
from_json(«CAST(NULL AS STRING)», 'a INT')
from_json(«'{"A":1}'», 'a INT')
from_json(«'{"a":300}'», 'a TINYINT')
from_json(«'{}'», 'a INT')
from_json(«'{"a":1'», 'a INT')
from_json(«'{"t":"29/02/2024"}'», 't DATE', map('dateFormat', 'dd/MM/yyyy'))
from_json(«'{"t":"29/02/2024 10:00"}'», 't TIMESTAMP', map('timestampFormat', 'dd/MM/yyyy HH:mm'))
to_json(«named_struct('a', 1, 'b', 'x')»)
to_json(«named_struct('a', 1, 'b', CAST(NULL AS STRING))»)
to_json(«array(named_struct('a', 1))»)
to_json(«map('k', 1.5D)»)
to_json(«named_struct('t', TIMESTAMP '2024-02-29 13:04:05.678', 'd', DATE '2024-02-29')»)
to_json(«named_struct('d', CAST(1.50 AS DECIMAL(10,2)), 'f', 1.0D)»)
to_json(«named_struct('s', 'a"b\\c\n/')»)
to_json(«array(1, NULL)»)
to_json(struct(«1» AS a, «'x'» AS b))
json_array_length(«'[1,2,[3]]'»)
json_array_length(«'{"a":1}'»)
json_object_keys(«'{"a":1,"b":{"c":2}}'»)
schema_of_json('{"a":1,"b":["x"]}')
is_variant_null(parse_json('null'))
# arrays, maps, structs
array(«1», «2», «3»)
array(«1», «CAST(NULL AS INT)»)
array()
array(«1», «2.5»)
array(«1», «'a'»)
array_contains(«array(1, 2, 3)», «2»)
array_contains(«array(1, NULL)», «2»)
array_contains(«array(1, NULL)», «1»)
array_contains(«CAST(NULL AS ARRAY<INT>)», «1»)
array_distinct(«array(3, 1, 3, NULL, 1, NULL)»)
array_union(«array(3, 1, 3)», «array(2, 1, NULL)»)
array_intersect(«array(3, 1, 3, NULL)», «array(1, 3, NULL)»)
array_except(«array(3, 1, 3, NULL, 4)», «array(1)»)
array_join(«array('a', NULL, 'b')», ',')
array_join(«array('a', NULL, 'b')», ',', '-')
array_position(«array(3, 1, 2)», «1»)
array_position(«array(3, 1, 2)», «9»)
array_position(«array(3, NULL)», «CAST(NULL AS INT)»)
array_remove(«array(1, 2, NULL, 2)», «2»)
array_repeat(«'ab'», «3»)
array_repeat(«1», «0»)
array_max(«array(3, NULL, 9, 1)»)
array_min(«array(3, NULL, 9, 1)»)
array_size(«array(1, NULL)»)
array_sort(«array(3, NULL, 1)»)
array_sort(«array('b', 'a', NULL)»)
array_sort(«array(3, 1, 2)», (a, b) -> b - a)
sort_array(«array(3, NULL, 1)»)
sort_array(«array(3, NULL, 1)», true)
sort_array(«array(3, NULL, 1)», false)
array_append(«array(1)», «2»)
array_prepend(«array(1)», «2»)
array_append(«CAST(NULL AS ARRAY<INT>)», «2»)
array_insert(«array(1, 2)», «1», «9»)
array_insert(«array(1, 2)», «-1», «9»)
array_insert(«array(1, 2)», «5», «9»)
array_compact(«array(1, NULL, 2)»)
arrays_overlap(«array(1, 2)», «array(2, 3)»)
arrays_overlap(«array(1, NULL)», «array(3)»)
arrays_overlap(«array(1)», «array(3)»)
arrays_zip(«array(1, 2)», «array('a', 'b')»)
arrays_zip(«array(1, 2)», «array('a')»)
slice(«array(1, 2, 3, 4)», «2», «2»)
slice(«array(1, 2, 3, 4)», «-2», «2»)
slice(«array(1, 2, 3, 4)», «0», «2»)
slice(«array(1, 2, 3, 4)», «9», «2»)
element_at(«array(1, 2, 3)», «1»)
element_at(«array(1, 2, 3)», «-1»)
element_at(«array(1, 2, 3)», «4»)
element_at(«array(1, 2, 3)», «0»)
element_at(«map('a', 1)», «'a'»)
element_at(«map('a', 1)», «'b'»)
try_element_at(«array(1, 2, 3)», «4»)
try_element_at(«array(1, 2, 3)», «2»)
try_element_at(«map('a', 1)», «'b'»)
get(«array(1, 2, 3)», «0»)
get(«array(1, 2, 3)», «9»)
get(«array(1, 2, 3)», «-1»)
«array(1, 2, 3)»[0]
«array(1, 2, 3)»[«2»]
«array(1, 2, 3)»[3]
«array(1, 2, 3)»[-1]
«CAST(NULL AS ARRAY<INT>)»[0]
«map('a', 1)»['a']
«map('a', 1)»['b']
«map(1, 'x')»[1]
«map(0, 'x')»[0]
size(«array(1, NULL)»)
size(«map('a', 1)»)
size(«CAST(NULL AS ARRAY<INT>)»)
cardinality(«array(1, 2)»)
flatten(«array(array(1, 2), array(3))»)
flatten(«array(array(1, 2), CAST(NULL AS ARRAY<INT>))»)
explode(«array(1, NULL)»)
explode(«map('a', 1, 'b', 2)»)
posexplode(«array('x', 'y')»)
inline(«array(named_struct('a', 1, 'b', 'x'), named_struct('a', 2, 'b', 'y'))»)
explode_outer(«CAST(NULL AS ARRAY<INT>)»)
stack(2, 1, 2, 3, 4)
map(«'a'», «1», «'b'», «2»)
map()
map(«'a'», «1», «'a'», «2»)
map_keys(«map('a', 1, 'b', 2)»)
map_values(«map('a', 1, 'b', 2)»)
map_entries(«map('a', 1)»)
map_from_arrays(«array('a', 'b')», «array(1, 2)»)
map_from_entries(«array(struct('a', 1), struct('b', 2))»)
map_concat(«map('a', 1)», «map('b', 2)»)
map_concat(«map('a', 1)», «map('a', 2)»)
map_contains_key(«map('a', 1)», «'a'»)
map_contains_key(«map('a', 1)», «'x'»)
map_filter(«map('a', 1, 'b', 2)», (k, v) -> v > 1)
map_zip_with(map(1, 'a'), map(1, 'x'), (k, v1, v2) -> concat(v1, v2))
transform_keys(«map('a', 1)», (k, v) -> upper(k))
transform_values(«map('a', 1)», (k, v) -> v + 1)
str_to_map(«'a:1,b:2'», ',', ':')
str_to_map(«'a:1,b:2'»)
transform(«array(1, 2)», x -> x + 1)
transform(«array(5, 6)», (x, i) -> x + i)
filter(«array(1, 2, NULL, 3)», x -> x > 1)
filter(«array(1, 2, 3)», (x, i) -> i > 0)
exists(«array(1, 2)», x -> x = 2)
exists(«array(1, NULL)», x -> x = 2)
forall(«array(1, 2)», x -> x > 0)
forall(«array(1, NULL)», x -> x > 0)
any_match(«array(1)», x -> true)
aggregate(«array(1, 2, 3)», 0, (acc, x) -> acc + x)
aggregate(«array(1, 2, 3)», 0, (acc, x) -> acc + x, acc -> acc * 10)
reduce(«array(1, 2, 3)», 0, (acc, x) -> acc + x)
zip_with(«array(1, 2)», «array(10, 20)», (x, y) -> x + y)
zip_with(«array(1, 2)», «array(10)», (x, y) -> x + y)
sequence(«1», «4»)
sequence(«4», «1»)
sequence(«1», «9», «3»)
sequence(«1L», «3L»)
sequence(«DATE '2024-01-30'», «DATE '2024-02-02'»)
sequence(«DATE '2024-01-31'», «DATE '2024-04-30'», INTERVAL 1 MONTH)
sequence(«1», «4», «-1»)
shuffle(array(1))
named_struct('a', «1», 'b', «'x'»)
named_struct('a', «1», 'b', «'x'»).b
struct(«1» AS a, «'x'» AS b)
struct(«1», «'x'»)
struct(«1» AS a).a
(«1», «'x'»)
named_struct('a', «1») = named_struct('a', «1»)
array(«1», «2») = array(1, 2)
array(«1», «2») < array(1, 3)
array_agg(x) FROM VALUES (1), (2) AS t(x)
to_json(from_json(«'{"a":[1,2]}'», 'a ARRAY<INT>'))
# conditionals
nvl(«CAST(NULL AS INT)», «2»)
nvl(«CAST(NULL AS STRING)», «2»)
nvl2(«CAST(NULL AS INT)», «1», «2»)
ifnull(«1», «2»)
nullif(«1», «1»)
nullif(«1», «2»)
nullif(«CAST(NULL AS INT)», «2»)
nullifzero(«0»)
zeroifnull(«CAST(NULL AS INT)»)
coalesce(«CAST(NULL AS INT)», «CAST(NULL AS INT)», «3»)
coalesce(«CAST(NULL AS INT)», «2.5»)
coalesce(«CAST(NULL AS DATE)», «'2024-01-01'»)
greatest(«1», «CAST(NULL AS INT)», «3»)
greatest(«CAST(NULL AS INT)», «CAST(NULL AS INT)»)
least(«1», «CAST(NULL AS INT)», «3»)
greatest(«'a'», «'B'»)
greatest(«1», «2.5»)
least(«DATE '2024-01-01'», «DATE '2023-01-01'»)
greatest(«1.0D», «CAST('NaN' AS DOUBLE)»)
if(«true», «1», «2»)
if(«CAST(NULL AS BOOLEAN)», «1», «2»)
if(«1 > 2», «1», «2.5»)
decode(«2», 1, 'Southlake', 2, 'San Francisco', 'Non domestic')
decode(«9», 1, 'Southlake', 'Non domestic')
decode(«9», 1, 'Southlake')
decode(«CAST(NULL AS INT)», NULL, 'null', 'other')
CASE «1» WHEN 1 THEN 'one' WHEN 2 THEN 'two' END
CASE WHEN «CAST(NULL AS BOOLEAN)» THEN 1 ELSE 0 END
CASE WHEN «1» > 0 THEN 1 ELSE 2.5 END
CASE WHEN «1» > 0 THEN 'a' ELSE 1 END
«CAST(NULL AS INT)» <=> «CAST(NULL AS INT)»
«1» <=> «CAST(NULL AS INT)»
NOT («1» <=> «2»)
!«true»
! «1» > 2
«1» <> «2»
«1» != «2»
«CAST(NULL AS INT)» IN (1, 2)
«3» IN (1, NULL)
«1» NOT IN (2, 3)
«1» BETWEEN 0 AND 2
«true» AND «CAST(NULL AS BOOLEAN)»
«false» AND «CAST(NULL AS BOOLEAN)»
«true» OR «CAST(NULL AS BOOLEAN)»
«true» XOR true
«1» IS DISTINCT FROM «CAST(NULL AS INT)»
«CAST(NULL AS BOOLEAN)» IS TRUE
«true» IS NOT UNKNOWN
isnan(«CAST('NaN' AS DOUBLE)»)
isnan(«CAST(NULL AS DOUBLE)»)
nanvl(«CAST('NaN' AS DOUBLE)», «5.0D»)
equal_null(«CAST(NULL AS INT)», «CAST(NULL AS INT)»)
assert_true(«1 < 0»)
raise_error('no')
«CAST('NaN' AS DOUBLE)» = «CAST('NaN' AS DOUBLE)»
«CAST('NaN' AS DOUBLE)» > «CAST('Infinity' AS DOUBLE)»
# numbers
«1» + «2»
«2147483647» + «1»
«CAST(127 AS TINYINT)» + «CAST(1 AS TINYINT)»
«9223372036854775807L» + «1L»
«2147483647» * «2»
«1» - «2»
«1.10» + «2.2»
«1.10» - «2.25»
«1.5» * «2.25»
«CAST(1.5 AS DECIMAL(10,2))» * «3»
«CAST(1.5 AS DECIMAL(10,2))» + «1»
«CAST(1.5 AS DECIMAL(10,2))» + «1L»
«CAST(1.5 AS DECIMAL(10,2))» + «0.5D»
«CAST(1.5 AS DECIMAL(10,2))» * «CAST(2.5 AS DECIMAL(38,10))»
«CAST(123456789012345678.12 AS DECIMAL(20,2))» * «CAST(123456789.123456 AS DECIMAL(20,6))»
«CAST(99999999999999999999999999999999999999 AS DECIMAL(38,0))» + «1»
«CAST(1 AS DECIMAL(38,18))» + «CAST(1 AS DECIMAL(38,2))»
«1» / «2»
«1» / «3»
«7» / «0»
«7.0D» / «0.0D»
«7» / «CAST(NULL AS INT)»
«CAST(NULL AS INT)» / «0»
«1.0» / «3»
«CAST(10 AS DECIMAL(10,2))» / «CAST(3 AS DECIMAL(10,2))»
«CAST(100.00 AS DECIMAL(18,2))» / «CAST(161.342500 AS DECIMAL(18,6))»
«CAST(1 AS DECIMAL(38,10))» / «CAST(3 AS DECIMAL(38,10))»
«CAST(2 AS DECIMAL(5,1))» / «3»
«CAST(2 AS DECIMAL(5,1))» / «3L»
«CAST(-2 AS DECIMAL(5,1))» / «3»
«CAST(2 AS DECIMAL(5,1))» / «0.3D»
«CAST(2 AS DECIMAL(5,1))» / «0»
«1» / «CAST(8 AS DECIMAL(3,1))»
«CAST(99999999999999999999999999999999.99 AS DECIMAL(34,2))» / «CAST(0.01 AS DECIMAL(5,2))»
«1234567.89» / 1000
«12.50» / 100
«7» DIV «2»
«-7» DIV «2»
«7.5» DIV «2»
«7» DIV «0»
«7L» DIV «2»
«7» % «3»
«-7» % «3»
«7» % «-3»
«7» % «0»
«7.5» % «2»
«7.5D» % «2»
mod(«7», «3»)
mod(«-7.5», «2»)
pmod(«-7», «3»)
pmod(«7», «-3»)
pmod(«-7.5D», «2»)
pmod(«7», «0»)
- «5»
-(«-2147483648»)
+ «5»
round(«2.5»)
round(«3.5»)
round(«-2.5»)
round(«2.345», 2)
round(«2.5D»)
round(«-2.5D»)
round(«2.345D», 2)
round(«1.005D», 2)
round(«1234»)
round(«1250», -2)
round(«1234.567», -2)
round(«1234.567D», -2)
round(«CAST(NULL AS DOUBLE)», 1)
bround(«2.5», 0)
bround(«3.5», 0)
bround(«2.5D»)
bround(«25», -1)
bround(«2.345», 2)
ceil(«-0.1»)
ceil(«5»)
ceil(«5.5D»)
ceil(«3.1411», 3)
ceiling(«2.2»)
floor(«-0.1»)
floor(«5»)
floor(«5.5D»)
floor(«3.1411», 3)
floor(«CAST(-2.5 AS DECIMAL(10,2))»)
abs(«-1»)
abs(«-1.5»)
abs(«-2147483648»)
sign(«-5»)
sign(«-5.5»)
signum(«2.0D»)
pow(«2», «3»)
power(«2.5D», «2»)
sqrt(«16»)
sqrt(«-1»)
cbrt(«27»)
exp(«1»)
expm1(«0.001D»)
ln(«2.718281828459045D»)
ln(«0»)
ln(«-1»)
log(«10», «100»)
log(«2», «8»)
log(«2.718281828459045D»)
log10(«1000»)
log2(«8»)
log1p(«0.001D»)
log(«0», «1»)
sin(«1»)
cos(«1»)
tan(«1»)
asin(«2»)
acos(«0.5D»)
atan2(«1», «2»)
sinh(«1»)
degrees(«3.141592653589793D»)
radians(«180»)
pi()
e()
hypot(«3», «4»)
conv(«'100'», 2, 10)
conv(«'ff'», 16, 10)
conv(«-10», 16, -10)
bin(«13»)
bin(«-13»)
rint(«12.3456D»)
rint(«2.5D»)
factorial(«5»)
factorial(«21»)
width_bucket(«5.3D», 0.2, 10.6, 5)
width_bucket(«-2.1D», 1.3, 3.4, 3)
greatest(«CAST(1 AS DECIMAL(10,2))», «CAST(2 AS DECIMAL(12,4))»)
shiftleft(«2», 1)
shiftright(«-4», 1)
shiftrightunsigned(«4», 1)
«5» & «3»
«5» | «3»
«5» ^ «3»
~ «5»
bit_count(«7»)
getbit(«11», 0)
try_add(«2147483647», «1»)
try_add(«1», «2»)
try_subtract(«-2147483648», «1»)
try_multiply(«2147483647», «2»)
try_divide(«1», «0»)
try_divide(«1», «2»)
try_divide(«CAST(1 AS DECIMAL(5,2))», «3»)
try_mod(«1», «0»)
try_sum(x) FROM VALUES (9223372036854775807L), (1L) AS t(x)
1L
1S
1Y
1.5D
1.5F
1.5BD
1e3
1E-2
.5
123456789012
12345678901234567890
1.50
-0.5
0x1F
CAST(«'12'» AS INT)
CAST(«' 12 '» AS INT)
CAST(«'12.7'» AS INT)
CAST(«'1e3'» AS INT)
CAST(«'+12'» AS INT)
CAST(«''» AS INT)
CAST(«'abc'» AS INT)
CAST(«'2147483648'» AS INT)
CAST(«'12L'» AS INT)
CAST(«'1_000'» AS INT)
CAST(«'0x1F'» AS INT)
CAST(«2147483648L» AS INT)
CAST(«300» AS TINYINT)
CAST(«12.7» AS INT)
CAST(«-12.7» AS INT)
CAST(«12.7D» AS INT)
CAST(«-12.7D» AS BIGINT)
CAST(«1e20D» AS BIGINT)
CAST(«CAST('NaN' AS DOUBLE)» AS INT)
CAST(«true» AS INT)
CAST(«'12.5'» AS DOUBLE)
CAST(«' 12.5 '» AS DOUBLE)
CAST(«'1e3'» AS DOUBLE)
CAST(«'12.5d'» AS DOUBLE)
CAST(«'NaN'» AS DOUBLE)
CAST(«'inf'» AS DOUBLE)
CAST(«'-Infinity'» AS DOUBLE)
CAST(«'abc'» AS DOUBLE)
CAST(«'12,5'» AS DOUBLE)
CAST(«1.1D» AS FLOAT)
CAST(«CAST(1.1 AS FLOAT)» AS DOUBLE)
CAST(«'12.345'» AS DECIMAL(10,2))
CAST(«'12.355'» AS DECIMAL(10,2))
CAST(«'-12.345'» AS DECIMAL(10,2))
CAST(«' 12.3 '» AS DECIMAL(10,2))
CAST(«'1e2'» AS DECIMAL(10,2))
CAST(«'123456789.5'» AS DECIMAL(5,2))
CAST(«'abc'» AS DECIMAL(10,2))
CAST(«''» AS DECIMAL(10,2))
CAST(«12.345D» AS DECIMAL(10,2))
CAST(«2.675D» AS DECIMAL(10,2))
CAST(«12.345» AS DECIMAL(10,2))
CAST(«-12.345» AS DECIMAL(10,2))
CAST(«12» AS DECIMAL(10,2))
CAST(«1234» AS DECIMAL(5,2))
CAST(«12.5» AS DECIMAL)
CAST(«'true'» AS BOOLEAN)
CAST(«'t'» AS BOOLEAN)
CAST(«'yes'» AS BOOLEAN)
CAST(«'Y'» AS BOOLEAN)
CAST(«'1'» AS BOOLEAN)
CAST(«'0'» AS BOOLEAN)
CAST(«'off'» AS BOOLEAN)
CAST(«'abc'» AS BOOLEAN)
CAST(«' true '» AS BOOLEAN)
CAST(«2» AS BOOLEAN)
CAST(«0.0D» AS BOOLEAN)
CAST(«1.0D» AS STRING)
CAST(«1e7D» AS STRING)
CAST(«12345678.9D» AS STRING)
CAST(«0.001D» AS STRING)
CAST(«0.0001D» AS STRING)
CAST(«CAST(0.1 AS FLOAT)» AS STRING)
CAST(«1.50» AS STRING)
CAST(«CAST(0.0000001 AS DECIMAL(10,7))» AS STRING)
CAST(«'abc'» AS BINARY)
CAST(«X'616263'» AS STRING)
CAST(«array('1', '2')» AS ARRAY<INT>)
CAST(«array(1, 2)» AS ARRAY<STRING>)
CAST(«array(1.7, 2.2)» AS ARRAY<INT>)
CAST(«map('a', '1')» AS MAP<STRING, INT>)
CAST(«named_struct('a', 1)» AS STRUCT<b: STRING>)
try_cast(«'12'» AS INT)
try_cast(«'abc'» AS INT)
try_cast(«'12.7'» AS INT)
try_cast(«2147483648L» AS INT)
try_cast(«'2024-02-30'» AS DATE)
try_cast(«'123456789.5'» AS DECIMAL(5,2))
try_cast(«'x'» AS BOOLEAN)
try_cast(«'12.345'» AS DECIMAL(10,2))
try_cast(«300» AS TINYINT)
«'12'»::INT
«12.7»::INT
«'5'» + «3»
«'5'» * «2»
«'5.5'» + «1»
«'5'» = «5»
«'abc'» = «5»
«'5'» > «10»
«5» = «5.0»
«5» = «5.0D»
int(«'5'»)
bigint(«'5'»)
double(«'5.5'»)
float(«'5.5'»)
boolean(«'true'»)
decimal(«'5.5'»)
smallint(«5»)
tinyint(«5»)
binary(«'a'»)
«0.1D» + «0.2D»
«1» + «1.0D»
«1L» + «1»
1 = 1.0
2 ^ 3 | 1
rand() < 2
uuid() IS NOT NULL
monotonically_increasing_id()
positive(«5»)
negative(«5»)
# queries: aggregates
SELECT count(*), count(i), count(DISTINCT g), count(i, b) FROM t
SELECT sum(i), avg(i), min(i), max(i) FROM t
SELECT sum(b), avg(b) FROM t
SELECT sum(c), avg(c), min(c), max(c) FROM t
SELECT sum(d), avg(d) FROM t
SELECT sum(i) FROM t WHERE i IS NULL
SELECT sum(c) FROM t WHERE c IS NULL
SELECT sum(DISTINCT b) FROM t
SELECT sum(x) FROM VALUES (9223372036854775807L), (1L) AS v(x)
SELECT sum(x) FROM VALUES (CAST(99999999999999999999999999999999999999 AS DECIMAL(38,0))), (CAST(1 AS DECIMAL(38,0))) AS v(x)
SELECT avg(x) FROM VALUES (CAST(1 AS DECIMAL(38,18))), (CAST(2 AS DECIMAL(38,18))) AS v(x)
SELECT avg(x) FROM VALUES (1.0), (2.0), (2.0) AS v(x)
SELECT avg(x) FROM VALUES ('1'), ('2') AS v(x)
SELECT sum(c) / count(*) FROM t
SELECT sum(c) / count(c), sum(c) * 2, sum(c) + 1 FROM t
SELECT sum(i) / count(*) FROM t
SELECT round(avg(c), 2) FROM t
SELECT min(s), max(s), min(dt), max(ts) FROM t
SELECT count_if(i > 1), count_if(ok) FROM t
SELECT any_value(g) FROM t WHERE g = 'a'
SELECT first(i) FROM t WHERE i = 1
SELECT last(i) FROM t WHERE i = 1
SELECT max_by(s, i), min_by(s, i) FROM t
SELECT stddev(i), stddev_samp(i), stddev_pop(i), variance(i), var_pop(i), var_samp(i) FROM t
SELECT stddev(i) FROM t WHERE i = 1
SELECT corr(i, b), covar_pop(i, b), covar_samp(i, b) FROM t
SELECT skewness(i), kurtosis(i) FROM t
SELECT percentile(i, 0.5), percentile(b, 0.25) FROM t
SELECT percentile(i, array(0.25, 0.75)) FROM t
SELECT median(i), median(d) FROM t
SELECT mode(b) FROM t
SELECT percentile_approx(i, 0.5) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM t
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY i) FROM t
SELECT approx_count_distinct(i) FROM t
SELECT bool_and(ok), bool_or(ok), every(ok), some(ok), any(ok) FROM t
SELECT bit_and(i), bit_or(i), bit_xor(i) FROM t
SELECT sort_array(collect_list(i)), sort_array(collect_set(b)) FROM t
SELECT size(collect_list(i)), array_agg(i) FROM t WHERE i = 1
SELECT collect_list(i) FROM t WHERE i IS NULL
SELECT collect_set(i) FROM t WHERE i IS NULL
SELECT sum(i) FILTER (WHERE i > 1), count(*) FILTER (WHERE ok) FROM t
SELECT product(i) FROM t
SELECT listagg(s, ',') FROM t WHERE i = 1
SELECT string_agg(g, ',') WITHIN GROUP (ORDER BY g) FROM t
SELECT regr_slope(i, b), regr_count(i, b) FROM t
SELECT try_avg(i) FROM t
SELECT histogram_numeric(i, 3) FROM t
SELECT g, sum(i) FROM t GROUP BY g ORDER BY g
SELECT g, sum(i) AS n FROM t GROUP BY ALL ORDER BY ALL
SELECT g, count(*) AS n FROM t GROUP BY 1 HAVING n > 1 ORDER BY 1
SELECT g, sum(b) AS total FROM t GROUP BY g HAVING sum(b) > 10 ORDER BY g
SELECT upper(g) AS u, count(*) FROM t GROUP BY u ORDER BY u
SELECT g, ok, sum(i) FROM t GROUP BY ROLLUP (g, ok) ORDER BY ALL
SELECT g, ok, count(*) FROM t GROUP BY CUBE (g, ok) ORDER BY ALL
SELECT g, ok, count(*), grouping(g), grouping_id() FROM t GROUP BY GROUPING SETS ((g), (ok), ()) ORDER BY ALL
SELECT g, ok, count(*), grouping_id(g, ok) FROM t GROUP BY g, ok WITH ROLLUP ORDER BY ALL
SELECT DISTINCT g FROM t ORDER BY g
SELECT max(struct(i, s)) FROM t
# queries: windows
SELECT i, row_number() OVER (ORDER BY i) FROM t ORDER BY i
SELECT i, row_number() OVER (ORDER BY i DESC) FROM t ORDER BY i
SELECT i, g, rank() OVER (PARTITION BY g ORDER BY i), dense_rank() OVER (ORDER BY g) FROM t ORDER BY g, i
SELECT i, lag(i) OVER (ORDER BY i), lead(i, 2, 0) OVER (ORDER BY i) FROM t ORDER BY i
SELECT i, ntile(2) OVER (ORDER BY i), percent_rank() OVER (ORDER BY i), cume_dist() OVER (ORDER BY i) FROM t ORDER BY i
SELECT i, first_value(s) IGNORE NULLS OVER (ORDER BY i DESC) FROM t ORDER BY i
SELECT i, last_value(i) OVER (ORDER BY i) FROM t ORDER BY i
SELECT i, last(i, true) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t ORDER BY i
SELECT i, sum(i) OVER (ORDER BY b) FROM t ORDER BY i
SELECT i, sum(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), avg(c) OVER (PARTITION BY g) FROM t ORDER BY i
SELECT i, sum(b) OVER (ORDER BY dt RANGE BETWEEN INTERVAL 60 DAYS PRECEDING AND CURRENT ROW) FROM t ORDER BY i
SELECT i, nth_value(i, 2) OVER (ORDER BY i) FROM t ORDER BY i
SELECT i, count(*) OVER w, max(d) OVER w FROM t WINDOW w AS (PARTITION BY g) ORDER BY i
SELECT g, i FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY i DESC NULLS LAST) = 1 ORDER BY g
SELECT g, i, row_number() OVER (PARTITION BY g ORDER BY i) AS rn FROM t QUALIFY rn = 1 ORDER BY g
SELECT i FROM t ORDER BY i
SELECT i FROM t ORDER BY i DESC
SELECT i FROM t ORDER BY i NULLS LAST
SELECT i FROM t ORDER BY i DESC NULLS FIRST
SELECT s FROM t ORDER BY s
SELECT i, b FROM t ORDER BY b DESC, i
SELECT i FROM t ORDER BY i LIMIT 2
SELECT i FROM t ORDER BY i LIMIT 2 OFFSET 1
SELECT i FROM t ORDER BY ALL
SELECT i FROM t SORT BY i
# queries: joins, sets, generators
SELECT t.i, r.name FROM t JOIN r ON t.i = r.i ORDER BY ALL
SELECT t.i, r.name FROM t LEFT JOIN r ON t.i = r.i ORDER BY ALL
SELECT t.i, r.name FROM t LEFT OUTER JOIN r ON t.i <=> r.i ORDER BY ALL
SELECT t.i, r.name FROM t FULL OUTER JOIN r ON t.i = r.i ORDER BY ALL
SELECT r.i, r.name FROM t RIGHT JOIN r ON t.i = r.i ORDER BY ALL
SELECT i FROM t LEFT SEMI JOIN r ON t.i = r.i ORDER BY ALL
SELECT i FROM t SEMI JOIN r ON t.i = r.i ORDER BY ALL
SELECT i FROM t LEFT ANTI JOIN r ON t.i = r.i ORDER BY ALL
SELECT t.i FROM t ANTI JOIN r ON t.i = r.i ORDER BY ALL
SELECT i, name FROM t JOIN r USING (i) ORDER BY ALL
SELECT * FROM (SELECT i, g FROM t) JOIN r USING (i) ORDER BY ALL
SELECT * FROM (SELECT i, g FROM t) FULL JOIN r USING (i) ORDER BY ALL
SELECT * FROM (SELECT i, g FROM t) NATURAL JOIN r ORDER BY ALL
SELECT count(*) FROM t CROSS JOIN r
SELECT count(*) FROM t, r
SELECT i FROM t WHERE i NOT IN (SELECT i FROM r) ORDER BY i
SELECT i FROM t WHERE i NOT IN (SELECT i FROM r WHERE i IS NOT NULL) ORDER BY i
SELECT i FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.i = t.i) ORDER BY i
SELECT i FROM t WHERE i = (SELECT max(i) FROM t)
SELECT (SELECT i FROM r WHERE i = 2)
SELECT i FROM t WHERE i > 100 AND i = (SELECT i FROM r WHERE i = 2)
SELECT i FROM t UNION SELECT i FROM r ORDER BY i
SELECT i FROM t UNION ALL SELECT i FROM r ORDER BY i
SELECT i FROM t INTERSECT SELECT i FROM r ORDER BY i
SELECT i FROM r EXCEPT SELECT i FROM t ORDER BY i
SELECT i FROM r MINUS SELECT i FROM t ORDER BY i
SELECT i FROM t EXCEPT ALL SELECT i FROM r ORDER BY i
SELECT i, 1.5 AS x FROM r UNION ALL SELECT 1L, 2 ORDER BY ALL
SELECT i, 'a' AS x FROM r UNION ALL BY NAME SELECT 'b' AS x, 7 AS i ORDER BY ALL
SELECT id, x FROM n LATERAL VIEW explode(l) e AS x ORDER BY ALL
SELECT id, x FROM n LATERAL VIEW OUTER explode(l) e AS x ORDER BY ALL
SELECT id, k, v FROM n LATERAL VIEW explode(m) e AS k, v ORDER BY ALL
SELECT id, k, v FROM n LATERAL VIEW OUTER explode(m) e AS k, v ORDER BY ALL
SELECT id, p, x FROM n LATERAL VIEW posexplode(l) e AS p, x ORDER BY ALL
SELECT id, p, x FROM n LATERAL VIEW OUTER posexplode(l) e AS p, x ORDER BY ALL
SELECT id, e.x FROM n LATERAL VIEW explode(l) e AS x WHERE x > 1 ORDER BY ALL
SELECT id, col FROM n LATERAL VIEW explode(l) e ORDER BY ALL
SELECT id, x, k FROM n LATERAL VIEW explode(l) a AS x LATERAL VIEW explode(map_keys(m)) b AS k ORDER BY ALL
SELECT id, explode(l) AS x FROM n ORDER BY ALL
SELECT id, explode_outer(l) AS x FROM n ORDER BY ALL
SELECT id, explode(m) FROM n ORDER BY ALL
SELECT id, explode(m) AS (k, v) FROM n ORDER BY ALL
SELECT id, posexplode(l) FROM n ORDER BY ALL
SELECT id, posexplode(l) AS (p, x) FROM n ORDER BY ALL
SELECT id, posexplode_outer(l) AS (p, x) FROM n ORDER BY ALL
SELECT id, inline(array(st)) FROM n WHERE id < 3 ORDER BY ALL
SELECT id, a, b FROM n LATERAL VIEW inline(array(struct(id, 'x'))) e AS a, b ORDER BY ALL
SELECT n.id, e.x FROM n, LATERAL explode(l) AS e(x) ORDER BY ALL
SELECT n.id, x FROM n, LATERAL (SELECT id + 1 AS x) ORDER BY ALL
SELECT * FROM explode(array(10, 20))
SELECT * FROM range(3)
SELECT * FROM range(2, 8, 3)
SELECT json.a, json.b FROM (SELECT '{"a":1,"b":"x"}' AS j) LATERAL VIEW json_tuple(j, 'a', 'b') json AS a, b
SELECT json_tuple('{"a":1,"b":"x","c":{"d":1}}', 'a', 'b', 'c')
SELECT id, st.x, st.y FROM n ORDER BY id
SELECT st.* FROM n WHERE id < 3 ORDER BY x
SELECT id, l[0], m['a'] FROM n ORDER BY id
SELECT id, size(l), size(m) FROM n ORDER BY id
SELECT id, element_at(m, 'a'), try_element_at(l, 4) FROM n ORDER BY id
SELECT id, transform(l, x -> x * 2), filter(l, x -> x IS NOT NULL), aggregate(l, 0, (a, x) -> a + coalesce(x, 0)) FROM n ORDER BY id
SELECT id, exists(l, x -> x > 2), forall(l, x -> x > 0), array_contains(l, 2) FROM n ORDER BY id
SELECT id, to_json(st), to_json(m), to_json(l) FROM n ORDER BY id
SELECT id, array_max(l), array_distinct(l), sort_array(l), array_sort(l) FROM n ORDER BY id
SELECT i + 1 AS j, j * 2 AS k FROM t ORDER BY i
SELECT i AS b, b + 1 AS x FROM t ORDER BY ALL
SELECT * EXCEPT (i, b, c, d, dt, ts) FROM t ORDER BY ALL
SELECT t.* EXCEPT (b, c, d, s, dt, ts, ok) FROM t ORDER BY ALL
SELECT `i` AS `a b` FROM t ORDER BY `a b`
SELECT i `x y` FROM t WHERE g = "a" ORDER BY i
SELECT T.I FROM t WHERE T.G = 'a' ORDER BY I
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(x, y)
SELECT * FROM VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(x, y)
VALUES (1), (2)
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a) SELECT * FROM a UNION ALL SELECT * FROM b
WITH a(p, q) AS (SELECT 1, 2) SELECT q, p FROM a
SELECT * FROM t TABLESAMPLE (100 PERCENT) WHERE i = 1
SELECT * FROM (SELECT g, i FROM t) PIVOT (sum(i) FOR g IN ('a', 'b'))
SELECT * FROM (SELECT 1 AS id, 2 AS jan, 3 AS feb) UNPIVOT (v FOR m IN (jan, feb)) ORDER BY m
SELECT i, case when ok then 1 end AS x FROM t WHERE dt >= '2024-01-01' ORDER BY i
SELECT i FROM t WHERE dt BETWEEN '2024-01-01' AND '2024-12-31' ORDER BY i
SELECT i FROM t WHERE ts >= DATE '2024-01-01' ORDER BY i
SELECT i FROM t WHERE s LIKE '%an%' OR s RLIKE '^a'
SELECT i, c / b, c * b, c + b, c - d FROM t ORDER BY i
SELECT i, i / b, i % 2, i DIV 2, -i FROM t ORDER BY i
SELECT i, c / 3, c / 100.0, 1 / c FROM t WHERE c <> 0 ORDER BY i
SELECT i, date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS'), date_trunc('HOUR', ts), to_date(ts) FROM t ORDER BY i
SELECT i, year(dt), month(dt), datediff(dt, DATE '2024-01-01'), months_between(dt, DATE '2024-01-01') FROM t ORDER BY i
SELECT i, concat(s, '-', i), concat_ws('-', s, i), coalesce(s, 'none'), length(s) FROM t ORDER BY i
SELECT i, CAST(d AS INT), CAST(c AS INT), CAST(b AS STRING), CAST(d AS STRING), CAST(ts AS STRING) FROM t ORDER BY i
SELECT i, round(d), round(c, 1), floor(c), ceil(d) FROM t ORDER BY i
SELECT i, hash(s) FROM t WHERE i = 1
SELECT sum(CASE WHEN ok THEN c ELSE 0 END), sum(CASE WHEN ok THEN 1 ELSE 0 END) FROM t
SELECT i FROM t WHERE NOT ok ORDER BY i
SELECT count(*) FROM t WHERE s = ''
SELECT i FROM t WHERE (i, g) IN ((1, 'a'), (3, 'c'))
SELECT named_struct('a', i, 'b', s) AS x FROM t ORDER BY i
SELECT struct(i, s) AS x FROM t ORDER BY i
SELECT struct(*) AS x FROM r ORDER BY i, name
SELECT map('k', i) AS x FROM t ORDER BY i
SELECT array(i, b) AS x FROM t ORDER BY i
SELECT a.x FROM (SELECT explode(array(named_struct('x', 1), named_struct('x', 2))) AS a)
SELECT transform(array(named_struct('q', 1, 'p', 2.5)), e -> e.q * e.p) AS x
SELECT g, collect_list(i) AS l FROM t WHERE g = 'c' GROUP BY g
SELECT g, array_sort(collect_set(ok)) FROM t GROUP BY g ORDER BY g
SELECT i, sum(i) OVER () FROM t ORDER BY i
SELECT max(i) + 1 FROM t
SELECT NULL AS x
SELECT CAST(NULL AS STRING) AS x, NULL + 1 AS y
SELECT (1 + 2) * 3 - 4 / 2 AS x
SELECT -2 ^ 2 AS x
SELECT 4 | 1 & 2 AS x
SELECT 1 + 2 || 'a' AS x
SELECT NOT true = false AS x
SELECT true AND NOT false OR false AS x
SELECT 2 * 3 % 4 AS x
