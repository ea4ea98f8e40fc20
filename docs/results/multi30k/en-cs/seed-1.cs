muž v oranžové čepici se na něco dívá .
bostonský teriér běží po zelené trávě před bílým plotem .
dívka v karatistickém dresu před kopcem .
pět lidí v zimních bundách a helmách stojí ve sněhu , v pozadí je sníh a v pozadí .
lidé opravují střechu domu .
muž ve světle zbarveném oblečení fotí skupinu mužů v tmavých oblecích a čepicích stojí kolem ženy v drsném sálu .
skupina lidí stojí před iglem .
chlapec v červeném dresu se snaží na domácí metu , zatímco ho chytač v modrém dresu se snaží chytit .
muž pracuje na budově .
muž ve vestě sedí na židli a drží magazíny .
matka a její mladá píseň si užívají nádherný den venku .
muži hrají volejbal , jeden z nich nůžemnějící míč , ale za ruce ve vzduchu .
žena drží mísu jídla v kuchyni .
muž sedí u stolu s nástrojem v jeho domě .
tři lidé sedí v jeskyni .
dívka v džínových šatech jde po vyvýšeném kladině .
blondýna drží za ruce s mužem v písku .
žena v šedém svetru a černé kšiltovce stojí v řadě v obchodě .
člověk v pruhovaném triku leze na horu .
dva muži zdraví , zatímco se na ně dívají ženy .
lidé stojí před budovou .
teenager hraje na trumpetu na hřišti .
žena dělá salto na trampolíně na pláži .
muž stojí u skupiny videohrů v baru .
žena používá vrtačku , zatímco jiný muž jí fotí .
žena v růžovém svetru a zástěře čistí stůl s motivem spongebo .
muž krájí větve stromů .
skupina asijských chlapců čeká na maso , aby se připravuje na grilování .
ženy v tradičním oblečení recitují původní život .
jeden muž drží hlavu jiného muže a připravuje se na úder do obličeje .
šest lidí jede na horském kole skrz džunglí .
dvě blonďaté dívky sedí na římse na přelidněném náměstí .
dítě cáká ve vodě .
tři lidé sedí u piknikového stolu před budovou , na které je namalovaná jako univerzity .
tři chlapci stojí na molu v plavkách .
zaměstnanec podává ženě s taškou , zatímco si prohlíží ryby na trhu .
hezká žena hraje na harfu .
venkovní stavař v uniformě se dívá na kameru za plotem .
mladá dáma se dívá na pizzu .
muž bez trička v šortkách rybaří zatímco stojí na nějakých kamenech .
dívka v záchranné vestě plave ve vodě .
muž v uniformě a muž v modrém triku stojí před dodávkou .
lidé sedí ve vlaku .
dítě se houpe s nohama ve vzduchu v lese .
muž v červeném triku vstupuje do podniku .
dva muži v plavkách skáčou do vzduchu na moderní pláži .
batole vaří s dalším člověkem .
otec , dospělých a dvě děti , které pracují venku na zahradě , zatímco používají na trávě a sází strom .
muž vaří jídlo na sporáku .
muž v džínách na pláži si hraje s červeným míčkem .
lidé jdou po chodníku vedle řady obchodů .
wakeboardér předvádí salto , zatímco je na vysoké rychlosti .
velká skupina lidí zaplňuje ulici .
muž na šňůru jde do vody .
žena v džínách jde kolem autobusu s reklamní ženou , která se dívá přes sluneční brýle .
muž v růžovém triku sedí v trávě a míč je ve vzduchu .
auto zaparkovaný na pláži .
dva muži v černém ve městě .
muž ve žlutých kalhotách zvedá ruce .
dva muži , kteří mají na sobě čepice a jdou kolem vodní plochy během boudy .
tým roztleskávaček předvádí sestavu na židlích .
chlapec hraje dámu s dospělým mimo záběr , zatímco dívka se dívá .
dav lidí se baví ve veřejném parku .
muž sedí na lavičce a drží svého psa a dívá se na vodu .
chlapec a jeho mladší bratr si spolu hrají na hřišti .
žena v modré kožené bundě sedí na lavičce během slunečného odpoledne a lidé za ní .
hnědý pes stojí na písečné pláži .
žena sedí s košíkem plným látky , obklopeného šátkem .
muž griluje na svém dvorku .
žena zpívá v klubu s kytarou za ní .
kytarista hraje v nočním klubu na červenou kytaru .
dítě sedí na zahradní židli a dívá se na kameru .
dvě ženy a tři muži se dívají na oceán .
umělkyně s housle hraje na ulici , zatímco žena s modrou kytarou se dívá .
mladá dívka plave v bazénu .
několik dětí se venku připravuje na hru přetahovanou .
tři teenageři v metru si hrají .
hnědý pes jde po trávě s vyplazeným jazykem .
lidé sedí na trávě před budovou a dávají si pauzu .
muž bez trika se dívá do dáli , zatímco tři žena prochází kolem davu sedící před kavárnou .
dva mladí chlapci dávají ovoce na kolo .
muž v černém triku , kšiltovce a džínách hraje na bubny vzhůru nohama na žluté paži .
mladá umělkyně maluje obrázek ženy na zeď .
dvě členové týmu usa předvádí skok vysoko obklopeného dvěma dalšími členy kapely .
muž míchá hrnec tekutiny v této kuchyni .
chlapec wakeboarduje na jezeře .
muž pracuje na párek .
velká skupina lidí různého věku a genci sedí venku .
blonďatá žena nalévá pití na baru .
malé dítě v modro-bílém tričku šťastně drží žlutou plastovou folii .
žena s růžovými vlasy v černém mluví s mužem .
muž v japonském obleku připravuje jídlo pro dva lidi .
dívka skáče přes řeku ze skály .
pracovník se svým nástrojem klečí vedle dvou žen .
starší muž otevírá své ruce a dívá se na vzorek .
dítě v bílém karate obleku trénuje trik .
tři muži ve stejných barevných vestách jsou venku .
žena fotí dítě v růžové čepici , zatímco muž nese své ni .
skupina většina asiatek sedí na modrých židlích .
mladý chlapec ve fotbalovém dresu brečí do jeho palmy .
šťastná žena připravuje ohrazit v kavárně .
stavební dělník řídí těžké vybavení na staveništi .
žena běží po odpalu v ženském softballu , chytačem na ní .
muž v pracovním dresu míjí nástroj dalšího člověka .
skupina lidí leze po studené počasí .
horský muž se chystá slézt horu s modrou helmou .
muž dělá stojku na vrchu kulaté sochy .
dítě sedí u stolu v restauraci a drží papírovou masku u obličeje .
hnědý pes se dívá do jezera , aby se podíval na klacek .
matka učí své dva mladí chlapci , aby z nich rybaří z kamenitého pobřeží do velmi modré vody .
malé dítě jde vedle červených praporů .
dívka sedí na ozdobeném kole s mladším chlapcem , zatímco jiná dívka fotí .
černý pes skáče s míčem ve vodě .
muž v bílých kalhotách a modrém triku kope do žlutého boxovacího pytle .
dva indičtí muži se účastní obřadu .
chlapec s límem na nose a píše na ruce stojí v obchodě s videohrem .
silueta dvou lidí pádlují na kánoi na oceánu během západu slunce .
lidé stojí v zaplněném metru a na nástupišti venku je vidět skrz okno .
muž šplhá po zdi s ohněm v ruce .
dva hnědí psi běží sněhem .
na pódiu fotí malé kapely , která vystupuje pro divadelní publikum .
dítě v vánočním oblečení se dívá na kameru .
muž sedí vedle počítačového monitoru .
tato dáma má srdu a směje se .
lidé v budově , jeden fotí .
čtyři bílí psi s náhubky skáčou přes červenou zeď .
žena v modrém triku drží mimino .
dva lidé sedí na pruhovaných židlích na vodě .
stará žena pracuje u tkalcovského stavu .
chlapec stojí v popředí a dívá se přes ostatní lidi na hřišti .
muž v modré bundě si bere hlavu mladému chlapci rameno .
tři hnědí psi skáčou na ženu v modrém .
chlapec visí z taxíku a míjí taxíku .
muž v šedém triku skáče přes vrchol písečné duny v poušti .
dítě ve žlutém triku skáče nahoru a dolů .
pracovník ve žluté bundě je zvednutá vysoko , aby pracuje na budově .
muž v brazilské dává informace k mladému dospělému .
skupina piva táhnou ocas na baru s vánočními světly na stropu .
muž sjíždí útes přes oceán .
muž v černém jde ke svému náklaďáku ve sněhu .
mlze teriér skáče po míči .
policistka v kšiltovce a námořnicky modré uniformě se usmívá , zatímco má sluneční brýle před obchodem .
rodina jde v parku .
muž v zelené přilbě a žluté bezpečnostní vestě se mračí .
dítě s růžovým provázky na hlavě tančí obklopeni konfety , balónky .
pes s nosem na břehu spadla něco na břehu řeky .
muž se připravuje na místním stánku pro podniku .
muž v červeném triku se chystá jíst .
mladá žena v bílém drží tenisovou raketu .
chlapec v červeném triku kope do písku se žlutou lopatkou .
jedinec , který má na sobě rovnou bundu , je na dřevěné lavičce .
muž v bílém triku se dívá z okna kovu .
žena drží malou bílou sochu .
šest dětí bez trika si hraje v přírodní vodě a cáká se .
dva lidé jedou na kolech po horské cestě .
dívka skáče přes švihadlo na chodníku poblíž parkování .
muž v oranžovém triku a helmě .
malý chlapec si hraje s plastovými bloky , auta a zvířaty a dospělý se dívá .
malá dívka otevírá vánoční dárek .
žena v modrém obsluhuje fotoaparát před dvěma dalšími ženami .
malá dívka se snaží uhodit na komfaltovém gauči .
hnědo-černý pes běží po cestě v lese .
dva psi si hrají u stromu .
námořník v černém kabátě a kalhotách jde po schodech , zatímco se zaostřuje na psa .
dva muži v zeleném připravují jídlo v restauraci .
muž oblečený v černém koženém a kovbojském klobouku jde po renesančním festivalu .
pes běží venku se žlutou hračkou .
pes v meditém běží ve sněhu .
rodina si hraje na pláži se svým psem .
žena a dítě se objímají , zatímco se dítě zavázal .
dva muži a žena stojí venku .
skupina mužů , kteří používají polené lodi z vody .
muž pije z vína , zatímco čte noviny .
muž celý v černém a hraje na piano .
mladý chlapec v modrém dresu a žlutých šortkách hraje fotbal .
muž stojí na kamenné stavbě s vytaženýma rukama jako pták .
pes pije vodu venku na trávě .
dvě ženy v tílkách se dívají na kameru .
muž sedí na židli holičství a připravuje se na se na jeskyni .
malé dítě v zelených botách si hraje v blátě .
muž používá motorovou pilu , aby rozřízl .
muž sedí u piknikového stolu s tác a částečně zakrytým pivem před ním .
chlapec v černém triku a modrých džínách drží červenou baseballovou pálkou .
tmavovlasý muž v brýlích a havajské košili sedí na trávě .
psi běží na psí dráze .
světelný muž s kmenovými tetování míří na balkoně .
dva němečtí ovčáci se přetahují o sebe .
toto je skupina lidí , kteří stojí okolo nějaké události .
hnědo-bílý pes přinesl hračku .
muž s bílými vlasy hraje na akordeon uprostřed nějakých budov .
žena s hnědými vlasy sedí na lavičce před kavárnou .
muž vedle kola hraje na flétnu .
dvě děti balancuje na kládě a drží provaz .
muž na motorce předvádí trik na dráze .
mladá žena s fialovou látkou se schovává obličej a odpočívá na dřevěné verandě .
žena v hnědém triku sedí na jasně červené lavičce .
pes jde po kládě přes malou řeku .
mladý muž v bílém triku a zelených šortkách stojí na pařezu .
skupina lidí je celá za deštníky .
muž propaguje s obrovským nápisem přivázaným na svém kole .
muž hází kládu do vody , zatímco dva psi se dívají .
skupina žen hraje na hudební nástroje pod stanem u vody .
pohled na přeplněné ulici ve městě .
mladá blondýna drží bílý provaz za slunečného dne .
dva lidé v modrých tričkách jsou venku s býkem .
černý pes odpaluje do bazénu .
kovboj jede na zádech koně v soutěži .
železniční posádka předvádí údržbu na železniční trati .
pracovník v oranžové vestě používá lopatu .
dva dělníci mají diskuzi , zatímco pracují na staveništi .
tři muži jdou nahoru po kopci .
asiatka v květinových šatech pózuje na mostě blízko její družičky .
mladý muž na kytaru v kuchyni .
tři chlapci si hrají s bongy a kbelíky vody .
tři stavební dělníci pracují na chodníku .
lidé v lese vedle kánoe .
sbor je shromážděno v kostele .
skupina mladých dospívajících skáče v noci na fotku .
dva muži jedou na kajacích , jeden oranžový , druhý modrý , dolů po potoce .
dva pracovníci roztahují cement do cihlové budovy .
žena v červeném svetru a džínách sedí s rukama na koleni .
dva umělci se perou o obecenstvo , který pozorně dívá .
kouř odpočívá a čeká na letišti .
muž ve žluté bundě se věnuje oheň , chlapec v rodiči se dívá .
muž a chlapec na kamenné pláži .
žena na lodi jménem nápisem &quot; el el el &quot; kapi &quot; kapi &quot; s černými světly do vody .
chlapec sedí na a dívá se z mikroskopu .
mladá bosá dívka v růžových šatech skáče venku .
mnoho lidí sedí venku kolem stanu .
mladík v černém triku s nápisem &quot; asijské pala &quot; 200 &quot; hraje na buben , zatímco sedí .
muž prodává věci poblíž silnice , aby se dostal velké hory kaňonu .
dívka ve žlutém se směje na dívku v oranžovém , zatímco je pozoruje dívku v modrém .
pes skáče přes překážku venku .
pes s černým obojkem se válí v hlíně a sušené listí .
dva hnědí psi si hrají v divokém kruhu .
muž s knírem a vousy drží pánve , který má plameny z ní .
muž , který má na sobě rekonstrukci oblečení , se kroužejí bodu .
muž v černém triku rybaří na kamenitém břehu .
dva psi se perou o nos .
dva muži se zastavují na chodníku , zatímco kolem projíždí auto .
čínský muž sedí a čeká na zákazníky .
zaparkovaná auta s školním autobusem za nimi .
dvě ženy v podobných košilích jdou doleva .
malé dítě v oranžové záchranné vestě drží modrý kajak na vodě .
lidé jdou po stezce v parku plném stromů .
tři mladí dospělí mluví v davu lidí , žena vypadá smutně .
žena a dítě venku před dveřmi z malebné domova .
černoch a jeho dva bílí kamarádi si dávají hlavu blízko sebe .
dívka v maskáčových kalhotách sedí na vrchu lidského pole .
světle hnědý pes běží nahoru .
chlapec pózuje s velkou zelenou v nose .
plešatý muž se věnuje , jak jeho hnědý a černý pes mu skáče .
dav na rušné denní ulici .
chrt s náhubkem na sobě má žlutou a černé běží po trati .
muž v sandálech sedí na chodníku poblíž nějakých tašek .
muž a žena sedí na metě u plotu a povídají si .
dítě se dívá na kafe v obchodě .
muž pije z žlutého kelímku okolo lidí na rušné akci .
chlapec se opírá o auto s kytkami na kapotě .
žena v květinových šatech mluví s dětmi před dodávkou .
muž na svém svatebním dni .
mladá žena v černém triku a džínách zametá .
žena v klobouku leze po útesu poblíž velké vodní plochy .
velký černý pudl běží po trávě s hračkou v tlamě .
chlapec v šortkách dělá trik na skateboardu .
malý chlapec v červených kalhotách stojí na ulici .
žena píše zprávu na telefonu , zatímco je obklopen deštníky .
osm mužů hraje na hudební nástroje na pódiu s kytaristami světly .
muž v oranžové kombinéze a ochranné přilbě pomáhá s modrou hadicí .
muž a dvě dívky ukazují ryby , zatímco drží rybářský prut před vodou .
muž v červeném triku sleduje psa na překážkové dráze .
chlapec v červeno-bílých plavkách skáče dozadu v překrásném bazénu .
asiatka si nanáší vlasy dozadu .
starší žena a malé dítě v růžovém triku si hrají s barevnými kostkami .
malý černý pes skáče přes pole .
hnědovlasý muž v zeleném triku hraje venku na trumpetu .
muž mluví do telefonu s nohama nahoře .
skupina dětí sedí na modré podložce , zatímco jí z misek .
černý chlapec sedí v písku .
malý pes sleduje dva velcí psi , kteří si hrají na poli .
lidé sedí v kruhu před velkou budovou .
jeden pes skáče , aby chytil softbalový míček , zatímco druhý přihlíží .
blonďaté dítě se houpe na houpačce .
jeden muž a dvě ženy vedou diskuzi nad bílým vína .
asiat vaří venku jídlo .
hnědý pes se chystá chytit zelený létající talíř .
fanoušci fandí , jak hraje píseň .
mladý chlapec stojí vedle písečné sochy pyramidu .
tři malé děti jdou po travnatém dvorku .
muž z základy na uměleckém vozíku .
muž na kole jede na hoře .
chlapec v modrožlutých holinách běží po hlíně .
žena v oranžové bundě sedí na lavičce .
muž dělá trik na skateboardu .
muž v uniformě bojového umění ve vzduchu .
žena prodává tašky ovoce na chodníku .
dva fotbalové týmy jsou na hřišti .
dítě v modrém triku skáče z lavičky .
brankář ve žlutém poli se před brankou .
skupina mladých lidí se fotí v mexickém prostředí .
mladý muž skateboarduje z růžového zábradlí .
mladý chlapec skáče z houby na menší posteli .
dva lidé ve zvláštních kostýmech , jeden modrý a druhý fialový , stojí na silnici .
muž běží v modrém triku s číslem na něm.
asijský dělník v továrně pózuje pro kameru .
muž , který vypadá , že běží maraton , dává dva palci nahoru .
basketbalisté střílí na gól během hry .
fotbalista v oranžovém dresu se usmívá a drží fotbalový míč .
dva jezdci na skateboardech zatáčí zatáčky , zatímco se ostatní dívají .
tým v bílém a zlaté na postranní čáře fotbalového hřiště .
malá dívka tlačí své koloběžce skrz travnaté pole lemované stromy .
skupina asijských dětí v bílých tričkách a čepicích vystupují s davem , který se dívá .
chodci jdou po ulici a dívají se na dítě v kartonovém krabici .
hnědý pes běží po písečné pláži .
dva muži ve vojenských uniformách stojí vedle ženy .
dalmatmatin během recepci , kde se zachytil auto , obražených a tažní vlajky .
cyklista skáče přes překážku .
pár sedí na bílých zahradních židlích a usmívá se do objektivu .
malé děti jsou na malé vláčce .
surfař v modrých plavkách jede na vlnách .
chlapec skáče na jeho fotbalistu .
dva mladí muži na opačných týmech zápasí s míčem na fotbalovém hřišti .
lidé jdou po dlážděném svahu obklopeném čínskými prodavači .
mladý chlapec v bílých kalhotách skáče z gauče .
chlapec v oranžovém triku lije nohu z tašky .
žena , která má na sobě hnědé sandály a modré džíny , v bílém triku , drží dítě pod vysokým stromem .
tři lidé se usmívají a drží politické cedule .
strážník stojí vedle auta na městské ulici .
dva muži v kloboucích .
chlapec ve vzduchu se snaží kopnout fotbalový míč .
mladý chlapec s modrou čepicí má hlavu dolů .
zrzavý muž s dredy sedí a hraje na akustickou kytaru .
muž jí sendvič se svou dcerou na klíně .
afroamerické dítě drží něco , co je na obrázku .
žena řídí dav lidí s loukou .
diváci v kostýmech sledují , jak policista v uniformě , jak řídí proslov a muž v obleku drží misku ovoce .
dav je na baru .
dívka v bílém a dívka v zeleném prochází kolem modrého nádraží .
muž používá elektronický vybavení .
člověk surfuje na vlně v oceánu .
voják zkoumá něco .
nevěsta a ženich se líbají pod nevěstou .
ozbrojené policie stojí v pozadí , zatímco mladý muž s červenou šálou si zakrývá obličej .
černo-bílý pes skáče přes strmou překážku na soutěži .
žena ve svetru čte knihu v doma .
několik teenagerů se dívá přes zábradlí v tmavé místnosti .
muž v bílém triku začíná slézt na skálu .
dospívající chlapec se protahuje v kuchyni a můžete vidět jeho břicho .
lidé drží různé druhy melounů nad různými druhy bubnů .
tři farmářky na rýžovém rýži na rýžovém poli .
dvě ženy a muž se dívají na knihu .
tři děti jsou zobrazeni , zatímco stojí poblíž rozštěného provázku .
kuchař pózuje na kameru , zatímco vaří .
mnoho lidí na ulici demonstruje používající použití v květináčích .
dospívající skáče do kopce se svým kolem .
malá dívka běží na břehu pláže .
bílá kachna hází své křídly ve vodě .
dva muži vypadají , že se baví , zatímco stojí před nákladním autem , zatímco na ně stojí čtyři lidé .
žena v růžové sukni drží miminko .
hokejista ve žlutém dresu brání gól .
muž jde kolem velkého nápisu , na kterém je napsáno &quot; elektroniky . &quot;
tři chlapci v zelených tričkách a béžových kalhotách pózují na vrcholu skluzavky .
muž tančí se psem mezi nohama .
bílý pes běží v mělké vodě .
chovní jednotlivci pochodují s kapelou .
skupina dětí si spolu hraje na oplocené zahradě , zatímco je dospělý sleduje .
skupina žen spolu hraje na hudební nástroje .
malá dívka ve fialových šatech leží na zemi a pláče .
muž s hustými vlasy si holí vousy .
dva černí psi , černé štěně a bílý pes ve sněhu .
muž v basketbalovém dresu miami skáče , aby chytil střelu .
žena sedí venku před svým domem s modrými dveřmi a užívá si do vzduchu .
děti sedí na muži v banánském obleku .
šedobílý pes skáče přes vodu v písku .
dav shromážděný kolem vodní fontány v dešti .
několik starších mužů , někteří v tradičním shromáždění na rohu ulice .
mladý lasem vypadající pes je ve sněhu .
fotbalista ve zlatém dresu blokuje míč od protihráčů .
žena v černém triku plete s fialovou přízí .
čtyři ženy asijského původu mají na sobě zlaté šaty a ukazují balet .
člověk hraje na jedinečný nástroj .
dívka v černém sportovním oblečení s číslem 112 na dresu běží přes trávu .
dítě na běžkách má na sobě číslo &quot; 93 . &quot;
starší pán a mladá dívka spolupracují na puzzle .
filmové posádky filmují mladého afrického chlapce ve žlutém triku .
pouliční světla osvětlený most s cyklistou a nějakými auty .
muž jede na býkovi na býkovi .
chlapec skáče , aby trefil tenisový míček svojí raketou .
děti se dívají na zeď , zatímco se dva další lidé dívají .
lidé jdou kolem školního táboře s palmami v pozadí .
malá dívka kope do černého předmětu na hodině karate .
dva muži se snaží vzít z vody na chodníku z pneumatik .
dva muži tančí breakdance s davem a dívají se na ně .
pracovně oblečená žena stojí na pódiu a debatuje a diskutuje něco o čap .
žena leží na gauči a směje se .
špinavá podlaha se dostane u jedné bílé a jedna černoška .
rozhodl skáče přes plot .
tři psi si spolu hrají na poli .
dvě malé děti jsou na písku .
usmívající se mladý chlapec si hraje v listí mezi kachny .
tito čtyři lidé stojí venku se třemi psy .
zatímco návštěvníci na návštěvníci se průvodují ve směru více atrakce .
dívka v tričku s rádiem má otevřenou pusu .
kmenová skupina naplňuje vodu v poušti .
muž stojí na městské ulici .
hejno ptáků letí od jídla v jejich dílích .
dva muži jedou na farmě , zatímco se nachází s přívěsovým přívěsem .
dva lidé stojí na vrcholu hory .
mladá dívka si užívá , jak dělá anděl ve sněhu .
tři muži se usmívají na fotoaparát a ukazují své obamy .
člověk píše na tabuli v prázdné třídě .
muž v černém triku sedí u stolu s otevřenou notebookem před ním .
čtyři lidé odpočívají na travnatém kopci s výhledem na skalnatý údolí .
chlapec se skateboardem , který skáče do vzduchu po kolejích .
muž v oranžovém triku hraje tenis .
pes s červeným obojkem medvědí zuby na psa s modrým obojkem .
chlapec je venku a užívá si letní den .
pracovník v oranžovém pracovním obleku klečí a kontroluje kus stroje .
muži v kovbojských kloboucích stojí na rodeu .
jsou tam dva psi ve sněhu a jeden z nich má něco v tlamě .
zaměstnanec si dává pauzu od práce , aby si dali nápoj .
béžový pes běží za bílým psem a drží žlutou hračku .
hokejista v bílém dresu s klackem .
muž v bílém triku se zlatými hodinkami si hraje s kruhem .
černý kůň vystrkuje hlavu skrz plot a snaží se dosáhnout na trávu .
krasobrussslařka se snaží udržet ruce , ale se kouří .
dva muži a dívka se smějí .
dítě se naklání přes výstavu z modré a žluté plastové plastové , zatímco dospělý přihlíží .
černý pes se prochází pro plotěný míč na sněhu .
mladá dívka stojí vedle žlutého kočky na kuchyňském pultu .
dvě děti si hrají na hřišti .
tenista v zeleném pruhovaném triku drží ruku u pusy .
chlapec v červeném obleku si hraje ve vodě .
dítě v červeném kabátě a čepici drží velký kus sněhu .
dva policisté v oranžových bundách stojí venku před bílým stanem s diváky .
dva lidé stojí vedle stromu na zemi .
dva muži sedí a mluví poblíž kamenné budovy .
bruneta s brýlemi drží blonďaté dítě v červeném svetru a žlutých botách .
černobílý pes si hraje s bílým míčem .
dva lidé se líbají na chodníku před limuzí , zatímco lidé prochází kolem .
žena hraje volejbal .
dva velcí psi bojují na prašném poli .
hnědý pes skáče přes překážku .
muž v pruhovaném triku kouří cigaretu na ulici .
malá dívka drží malého chlapce na klíně .
muž se snaží sjet velmi býkovi na krásném odpolední odpoledně .
děti se perou , aby se zabavili nepře .
cyklista se naklání na horském kole kolem zatáčky na prašné dráze .
dva lidé a vodítky u domu .
mladý chlapec se učí , jak jede na kole se svým otcem .
chlapec v červeném triku a černých šortkách zametá příjezdovou cestu .
africká rodina stojí před nějakými vyjviženými domy .
muž hraje na hudební nástroj vedle stromu .
dvě ženy se drží za ruce nad stolem a usmívají se do objektivu .
hnědovlasý pes jde po trávě .
baseballový hráč v černém tričku právě v bílém tričku .
žena drží velkou dámu pro děti s jídlem .
dva psi , jeden s tenisovým míčem v puse , běží vysokou trávou .
dva dospělí a dvě děti sedí na lavičce v parku .
žena na travnatém poli fouká do pampelišky .
muž prodává brambor k skupině lidí .
skupina lidí na ulici se shromáždil , aby ji poslouchají na akordeon .
muž sedí na lavičce a asistuje své ipodu .
starý muž v metru , který má na sobě těžké oblečení , čte noviny .
starší muž v brýlích připravuje maso .
muž předvádí trik na kole , zatímco stojí na pedály , zatímco kola je rozdělena .
muž na pláži dělá písečnou sochu .
několik lidí v parku jí u piknikového stolu .
dvě ženy jsou připojeni ke stromu v nějaké stavební práci .
kovboj na rodeu se snaží vzít druhé osedit .
pes skáče skrz zápasní překážku .
obézní žena s dlouhými černými vlasy v růžovém triku s jmenovkou si nanáší rtěnku .
muž opravuje malou dívku na kole .
dvě dívky v džínových sukních tancují před nějakými muzikanti na ulici .
žlutý pes nese klacek u vody .
dívka ve svetru blokuje slunce .
rockový koncert probíhá .
tři ženy ve světle zbarvených barvách a čelenkách drží rozdřádekné karty .
hnědý pes kope v hlíně .
mladý chlapec v bílé pruhované košili a čelence drží tenisovou raketu .
dva psi běží pryč od kamery v lese .
dívka si hraje ve fontáně s oblečením .
tři mladí sumo zápasníci stojí a poslouchají zcerny .
dva turisté zkoumají kmen u strany lesní cesty .
tři hráči pronásledují tým protivníkovi na zem .
dva chlapci přechází ulici ve městě , zatímco kope do červeného fotbalového míče .
muž drží jiného v ruce .
bílý pes na hoře se otáčí na něco mimo záběr , v pozadí .
chlapec jede na skateboardu na rampě .
dlouhovlasý muž hraje na piano .
tři atleti drží kytici a stojí na místě .
dvě štíhlé prádlo v červených šatech .
mladý chlapec visí na oblečení .
malá dívka v růžovém se drží tyče .
muž v zeleném skáče na své motorce .
žena si hraje s dvěma malými chlapci v parku .
čtyři lidé hrají fotbal na pláži .
dvě dospívající dívky se objímají , jedna má na sobě helmu a v pozadí jsou cyklisté .
dva středně velcí psi běží přes sníh .
žena stojí na zeleném poli a drží bílého psa a ukazuje na hnědého psa .
stůl plný zarámovaných obrázků na venkovním trhu .
dva lidé sedí u stolu před zdí a dělají obličeje .
dva muži s piercingy na piercingy se usmívají .
dítě leží na béžovém koberci a směje se .
muž a žena sedí s rukama a všichni oblečení .
dvě ženy zápasí v dětském bazénu .
muž v bílém triku jde s nápojem v ruce .
dva lidé jsou silueta proti jezeru a vybírají namalovaný oblohu .
několik lidí sedí u stolu ve formálním oblečení .
dvě dívky ( jedna v modrém a druhá v růžovém ) závodí na kolečkových bruslích .
čtyři lidé sedí na hromadě kamenů .
skupina lidí dělá triky na motorce .
cyklista v závodním vybavení jede lesem .
muž v zeleném triku jde po pláži a nese své tenisky .
několik mužů stojí kolem starožitné závodní auto .
dva muži pracují pod kapotou bílého závodní auta .
děti skáčou z kraje bazénu .
muž na okraji zdi se chystá padat .
žena v pruhovaném oblečení na kole .
dívka v černém pózuje na kameru .
muž v šortkách stojí u vody .
čtyři černí muži sedí na schodech kostela .
jeřáb mezi hromadami suti .
gymnastka v červeno-bílém je uprostřed oblečení na tyči .
starší dáma v zeleném svetru sbírá zeleninu .
dva muži vyrábějí věci v dílně s nástroji .
učitel v bílém a malá dívka ve žlutých šatech si hrají s budovou .
malé dítě spí v posteli s otevřenou knihou na hrudi .
žena jí v trávě za krásného dne .
muž jde po dlážděné ulici vedle budov , na které je namalovaná červenými bory .
žena v klobouku dělá chléb .
osamocená žena , která používá velký kromě a pálík a želný materiálem , zatímco stojí na poli .
muž v karate vystupuje před dvěma rozhodčími .
muž ve formálním oděvu hraje na piano na chodníku ve městě .
starší muž sedí na židli a jí nějaké kachny .
žena v bílém triku pracuje za pultem v kavárně .
muž v pracovním oblečení stojí na zadní části nákladního auta .
dvě děti se dívají na koně skrz malý plot .
okno s nějakým designem na které je namalovaný .
žena v jasně růžovém kabátě stojí před obchodem s ženou , která má na sobě fialovou bundu a stojí před obchodem .
kovboj zvedá ruku s obvazem .
muž ve žlutém triku a muž v tmavě modrém triku mluví .
tři asijské děti sedí na gauči s jezdeckými lidmi v pozadí .
dívka v červeném triku skáče , aby odrazil tenisový míček .
muž pózuje se zeleným jeřábem .
muž myje lahve s dalším člověkem , zatímco se usmívá v restauraci .
muž nakládá krabici s mnoha miminy .
muž v černé bundě hraje na kytaru na veřejnosti .
skupina tančí v průvodu .
muž stojí na skalnatém útesu s výhledem na vodu .
policista sleduje ženu z autobusu .
dva policisté středního věku sledují parkoviště v noci .
dva muži v modrých tričkách se dívají na fotbal .
skupina mužů v modrých uniformách stojí spolu .
mladá žena dělá jógu na pláži .
velký dav lidí stojí v parku a několik hraje na hudební nástroje .
muž s kloboukem vytváří zvířátka z balónků .
muž griluje maso na venkovní jámě .
dva muži prodávají ovoce na trhu .
hnědovlasá žena v bílých bikinách lije pití na muže .
chlapec ve slunečních brýlích běží za pouti .
ruka v rukavicích drží něco , co se zdá být oušit proti kládu .
muž v kostkované košili ukazuje z černé rukavice .
dva muži v bílých plastových židlích sedí ve dveřích .
mladá dívka v červených šatech má na sobě černou kovbojskou čepici .
muž v červeno-bílém fotbalovém dresu stojí na hřišti s žluto-modrým fotbalovým míčem .
lidé skáčou přes horu na provaze .
lidé se dívají , zatímco účastníci v maratonu prochází kolem .
lidé na laptopech před velkým oknem .
neznámý žokej v práci , zatímco se na něj svítí světlo .
muž v rukavicích nese kukuřici na poli .
fotografie v zrcadle kavárny .
muslimská žena drží balónky na mladé události .
žena sedí v oploceném prostoru s kočkou a dvěma králíky .
žena sedí u cihlové zdi uvnitř budovy .
tři mladé ženy sedí na červených plyšových židlích .
žena v modrém triku jde ve vesnici .
šest dětí , které sedí na schodu se svými korálky a voskovkami .
béžový pes si hraje s klackem na pobřeží .
dva psi se kočkují třetí pes , který má vyplazeným jazykem .
dítě na motorce se usmívá .
6 lidí je shromážděna , aby jí velké večeři .
santa clause je vyfocen na slavnostní akci .
vojáci pochodují v dešti v new york den .
žena v modré helmě a červených kalhotách jede na motorce .
několik mužů má na sobě bojové umění , zatímco předvádějí nějaké pohyby .
mladá žena a muž v převleku , který si utíkají klacky s skupinou lidí v pozadí .
muž v uniformě jde po ulici se dvěma auty a stromy .
mladá žena leze po skalní stěně .
starší muž ve světle modré bundě pracuje na kraji silnice .
lidé se dívají přes několik barevných kusů na stole .
muž zpívá a hraje na kytaru do mikrofonu .
dva muži sedí v restauraci .
dvě ženy v šortkách běží po pláži podél vody .
stavební dělníci vedou diskuzi u kolejí .
pohled na pěší zóně v černém zástěru , kde stojí muž v černé zástěře a bílé kšiltovce .
skupina lidí si hraje na předmět .
malá dívka v modrém oblečení leze na kovové zábradlí na ulici .
skupina mužů sedí a mluví za nějakými zeleným ovocem .
muž ve žlutém oblečení stojí za mikrofonem pod stanem .
hnědý pes s fialovým frisbee v tlamě .
vypadá to , že muž trénuje svůj bojová umění poblíž bahenní vody .
žena s nápojem a žena s mobilem .
dítě v červeném kabátě mává rukou ve vzduchu , zatímco leží ve sněhu vedle červených plastových sáňkách .
žena sedí vedle své kabelky a sleduje psy v parku .
tři muži stojí na pódiu , jeden má na sobě klaunský makeup a drží kytaru .
žena v kmenové vesnici podává tekutinu .
žena v červených šatech tančí s mužem v obleku .
dva malí psi následují většího psa s tenisovým míčkem .
muž s hustými vousy a kšiltovkou sedí na lavičce v parku .
africký kmen stojí na zahradě s lesem v pozadí .
mladá dívka se snaží kartáčit kozu .
asiaté sedí v restauraci se žlutými židlemi .
holčička jí sušenky , zatímco sedí v dětské židli a má na sobě bryndák .
šedovlasý muž v černých rukavicích se pohybuje po trávníku .
žena sedí v řadě červených židlí a čte si knihu .
dítě tleská , zatímco jede na ramenou ženy .
rodina jde po chodníku skrz sníh , zatímco muž sedí na straně s papírovým kelímkem .
kočka sedí na vrchu obchodu .
muž v růžovém triku a černé bundě se sluchátky .
mladý muž se chystá hodit míč .
muž a dívka jdou po chodníku .
žena s růžovými vlasy se ohnutý na chodníku a drží růžové psy .
muž v obleku drží nápoj a jde po chodníku vedle autobusu .
muž skáče s skalní formace v pozadí .
člověk v červené bundě s černými kalhotami drží duha .
žena si dává ruku na člověka , která sedí na vozíčku .
muž v bílé zástěře něco vaří s vejci na pánvi před ženou v béžové bundě .
žena s kliknutým mobilem a hlavou čeká na přechodu .
skupina mužů jde po ulici ve městě .
silnice vedle zajímavého místa se spoustou sloupů .
skupina lidí v černém stojí na mole poblíž dlouhé konstrukce .
muž nese několik krabic s pivem .
muž středního věku sedí a hraje na akordeon .
dívka se zelenými vlasy , kravatách a náušnicemi stojí venku .
mladá dívka v růžovém triku běží na pláži směrem k oceánu .
skateboardista v černém triku a džínách jede na skateboardu ve městě .
muž v bundě fotí velkou budovu .
lidé na postranní straně fotbalové zápasu .
na tomto obrázku je čtyřčlenná rodina , která se pohybuje přes rušnou ulici ve městě .
skupina lidí jde po ulici na slunci .
ulice poblíž pouličního světla s několika lidmi včetně muže v hnědém kabátu a slunečních brýlích s rukou na obličeji .
nějaké rostliny se žvýkají poblíž okna .
tento hráč s modrou helmou se chystá dokončit míč během hry .
žena ve zlatém kabátě spěchá , aby chytil metro .
nějací lidé sedí na lavičkách pod řadami stromů před budovou .
muž v obleku sedí na autobusové zastávce .
afroameričan obklopený prázdnými košíky a tmavými bedny a tmavými bedny se pohybuje po rozkvetlých rukou .
mladá hnědovlasá žena jí a pije něco .
muž v obleku a klobouku hraje na ulici na kytaru .
žena v červené vestě pracuje na počítači .
lidé stojí v chudním , se brodí kouřem do obličeje .
muž používá koupelny v zrcadle kravatu .
hudba probíhá několik jedinců , zatímco šťastný dav sedí a poslouchá .
dva mladí muži jedou na velmi malém koni s vozíkem plným brambů .
žena v šatech jde po ulici kolem staveniště .
prodavač ve večerním obchodě , který si kupuje zákazník , aby si na jeho prodavačili .
muž se slunečními brýlemi řídí na konstrukci a reagují štěrk na zemi .
miminko si hraje se svými hračkami a dívá se na černo-bílou kočku .
dospívající dívka nese kytaru v lese .
muž s batohem jde po ulici .
dva muži se baví před obchodem s irou v rok .
žena v černém drží něco v tlamě .
skupina lidí sedí venku okolo malého , krátkého stolu .
muž jede na kole nahoru po rampě .
žena v černém tílku a s náhrdelníkem hledí do dálky u západu slunce .
tři mladé dívky jdou spolu po chodníku .
žena s dlouhými vlasy je na obřadu .
muž skateboarduje na silnici , zatímco ho jiný muž sleduje z chodníku .
muž v černé kožené bundě stojí před cedulí .
muž a žena spolu zpívají píseň .
mladá dívka s kudrnatými vlasy v bílém topu leží na trávě a drží květinu .
mladý fotbalový tým v zelených uniformách předvádí protačování .
žena dělá dramaticky na veřejném místě ve žlutém pásku .
muž se krčí , zatímco dělá čokolák , zatímco holuby v pozadí .
skupina mužů stojí na poli s černými míčky .
zaneprázdněný den na místním městském kurtu .
muž s cigaretou v puse opravuje talíř s jídlem .
dvě skupiny plavců se brodí venku .
lidé sedí na lavičce na náměstí s náhodnými předměty , včetně lampy a formace stojí poblíž .
dělníci obklopují díru s kbelíkem .
muž bez trička v černých šortkách stojí na kamenitém břehu na velké vodní ploše .
strážník se dívá , zatímco je na dutě .
lidé hrají kulečník , jeden muž má na sobě modrou košili a ostatní ženy , ale jejich hlavami pozdňují fotoaparát .
lidé stojí před sochou obklopenou vodou .
žena se dívá , zatímco muž se složenýma rukama mluví .
muž středního věku v bílých šortkách a žabkách se dívá nahoru po silnici .
dva muži v tmavě oranžovém oblečení a sandálech stojí poblíž velké reflexní sochy .
dva lidé tráví čas na své lodi .
muž a žena stojí na ulici ve městě .
hasiči se vynořuje z stanice metra .
čtyři muži , tři z nich mají na sobě ohnuté čepice , sedí na modré a olivově zelené žíněnce .
toto je velká skupina lidí sedících venku na lavičkách .
muž v červeném triku jde kolem tyrkysové a bílé kostkované restaurace , která se jmenuje &quot; 32 . &quot;
doktoři předvádí nějaký operaci .
starší muž s cigaretou v puse a kšiltovce si prohlíží fotoaparát .
malý orchestr hraje s rozevřenou před otevřené housle .
muž v červeném obleku tančí s ženou .
dva lidé se dívají v noci na světly ve městě .
dva motokrosoví cyklisté v ochranném oblečení , jeden ve vzduchu a druhý se dívá dolů na svou motorku .
několik mužů v oranžovém se shromáždila na venkovní akci .
dvě mladé dívky běží po chodníku před cihlovou budovou s praporky .
dva osoby lezou po strmé hoře .
dítě leží na zemi vedle kočárku .
pes tahá muže a ženu .
mnoho lidí na trhu se dívá na různé věci .
dva mladí muži hrají na elektrické kytary na pódiu .
potetovaný muž lije pivo z láhve do pusy mladého muže .
dva lidé stojí venku vedle flanelových hraček a popelnice .
čtyři lidé jedou na kolech po cestě poblíž rušné ulice .
žena v růžovém triku a s brýlemi .
žena v červeném triku zvedá ruku k davu pod ním .
chlapec v bílých šortkách skáče do jezera nebo řeky .
malá dívka se dívá skrz teleskop na pláži .
několik stavebních dělníků v oranžových bezpečnostních vestách kope do země .
člověk v kapuci stojí před budovou .
stavební dělníci se probírají o stavení .
muž jede na koni s dalšími muži , kteří dělají stejný za ním .
afroameričan jde po ulici .
dva jeptišky pózují na fotce .
žena s neonovými sluchátky píše do sešitu .
žena v zeleném triku s nápisem &quot; mluví do telefonu .
malé africké dítě nese na zádech mladší dítě .
skupina lidí sedí na židlích .
člověk v šátku stojí na ulici před svými věcmi .
orientální člověk v červeném triku a černých kalhotách se naklání přes kabelku na betonu .
černý pes a hnědý pes s míčem .
muž s černou vestou drží modelu letadla .
muž na poli s letadlem v výhled .
muž v obleku a kravatě a žena s kufříky , kteří čekají v londýně v londýně .
dítě jde po chodníku s několika americkými vlajkami .
černý pes běží po zelené trávě s hračkou v tlamě .
orientální cesta čeká na svou řadu na zatměrné místo .
pes se otáčí na trávě , aby měli míček .
skupina studentů sedí a poslouchá mluvícího mluvícího .
lidé jedou na skútrech po ulici v noci .
velký šedý moře a muž na kole .
muž v oranžovém triku a blonďatý chlapec jedou s dalšími lidmi na &quot; tlačí vozidlo . &quot;
mladý muž a žena poblíž velké kovové sochy .
loď s červeno-modrými nehty na přístavišti .
muž v černé čepici fotí na rušné ulici .
muž stojí na rušné ulici a dívá se na hlavu .
žena v černém má malou dívku ve žlutých šatech na ramenou .
skupina lidí na ulici připravuje hudební nástroje .
spadlý motorkář je u sebe .
tři lidé jdou po horské cestě , zatímco jedna žena se dívá do objektivu .
několik asiatů v černém oblečení na nějaké stanici .
žena v červené sukni jde po ulici s graffiti v pozadí .
gymnastický gymnastka v modro-růžovém oblečení předvádí sestavu .
lidé se chladí v kašně , žena v bílých šatech sedí na kraji a dívá se .
muž sedí na lavičce pod velkým stromem .
tři muži v červenobílých košilích , bílých kalhotách a černých čepicích drží vlajky .
lidé obdivuje práci na umělecké stěně .
rušný asijský obchod s papírovými lucerny a zákazníci .
tito lidé lezou po schodech na horu .
malé dítě v modrém oblečení se dívá na nějaké stromy v dálce .
lidé se dívají na děti v obchodě s hračkami .
muž v klobouku hraje na ulici na buben .
chlapec stojí se třemi dívky .
usmívající se muž s batohem drží pěstky před chlapcem v brýlích .
čtyři muži jsou venku a dívají se přes zelený most .
žena lenoší na ručníku před lidmi , kteří si užívají modrou vodu .
dospělý australský ovčák běží za běžícím ovčákem .
zákazníci a brza s jídlem , které je zachycen v králíka a květinovém městě .
afroamerický muž protestuje proti neznáše .
policista na kole čeká na světlo .
skupina mužů sedí okolo stolu .
skupina lidí v parku včetně starších mužů mají nápoje .
žena mluví s kamarádkou , zatímco venčí venku za slunečného dne .
mladý muž v šedočerné košili a bílé čelence .
dva lidé jedou na motorce s mnoha dalšími jezdci .
dvě ženy ve vojenské uniformě stojí s dalšími vojáky ve formaci .
tři dívky se usmívají na fotku .
žena , která má na sobě černé brýle a žlutou bundu , vypadá zmateně , zatímco sedí na béžové lavičce .
zrzavý mladý muž pije z fontány jako žena .
dva muži a žena jdou po ulici ve městě .
muž středního věku s červenými vlasy a brýlemi drží miminko .
mladý chlapec v červené čepici jede na koni .
dva chlapci si hrají na chodníku .
malá dívka v černém plaveckém obleku drží lopatu na pláži .
starý muž v klobouku a kabátu sedí na gauči .
dva chlapci se dívají na oblohu a mávají rukama a jsou oblečeni v oblečení , aby se rozcvičují .
mladý pár sedí na chodníku a odpočívá .
mladík v triku a kravatě se krčí a ukazuje gesto vítězství .
tři lidé sedí u stolu venku před barem .
chlapec v černém triku a červeném tílku visí vzhůru nohama , zatímco ostatní lidé se dívají .
muž jde kolem barevné nástěnné malby .
mladý muž jde s jiným mladým mužem na zádech u tří dívek , které se právě prochází .
muž zastřihává palmy v patiu &quot; cafe . &quot;
pět lidí jde nahoru po schodech vedle ženy v růžovém triku a hnědé sukni .
skupina lidí na venkovním trhu .
dva chlapci jedí svůj oběd ve venkovním prostoru obklopené dalšími lidmi .
žena v džínové bundě jde po chodníku .
muž řídí čtvrtý vůz se čtyřmi pasažéry , kteří jedou na přední straně a muž sedí na zádech .
muž v modrozelené košili čte noviny .
chlapec v kočárku má na sobě zelené tričko a drží knihu .
dvě děti sedí vedle sebe , zatímco jí sladkosti .
lidé jedou na kolech na ulici a jsou všichni v helmách .
dav lidí jede na kolech .
muž sedí na nástupišti s koly , které je taženo burkem .
muž na kole šlape přes oblouku .
barevně oblečený mladý muž s koženou kůží sedí a kouří cigaretu .
dva muži v oblecích pod deštníkem a před graffiti .
starý hubený muž ve špinavém bílém triku jede na kole po ulici .
muž na koni se snaží chytit mladého býka .
kovboj se snaží chytit tele , zatímco jede na koni .
dva cyklisté v helmách jedou kolem nějakých prázdných venkovských země .
muž se naklání a táhne něco z tašky .
muž ve motorovém vozíku , který jede kolem parku , aby se věnil .
člověk s tetováním se dívá na fotku na digitálním foťákem nebo telefon .
muž v černém triku a džínách stojí na chodníku a dívá se na kameru .
chlapec a dívka stojí spolu na chodníku , zatímco se dívá na předmět .
několik lidí v modrých oblecích a jeden v sukni a černé blůze .
žena a pes sedí na bílé lavičce poblíž pláže .
dvě ženy jdou po hlíně před velkou budovou .
skupina mužů a dítě v bílých trikách stojí na silnici .
žena v černém a s černou taškou na chodníku .
skupina mužů sedí okolo stolu a povídají si .
malba na straně budovy .
asiat v rukavicích pracuje u stánku s jídlem .
žena sedí u stolu a pracuje na svém počítači .
člověk se dívá na počítač na stole s telefonem a krabicí .
muž sedí na židli a sleduje lidi , kteří se prochází .
dva lidé v kloboucích stojí na poli a stará se o plodiny .
nějací skáčou přes vysokou tyč v baru .
muž v botách a kovbojském klobouku sedí na koni , který skáče , zatímco diváci sedí v tribunách .
dvě mladé dívky sedí na ulici a jedí kukuřici .
tři děti v fotbalových uniformách dvou různých týmů hrají fotbal na fotbalovém hřišti , zatímco další hráč a dospělý stojí v pozadí .
malé dítě se špinavým obličejem je držena starou ženou .
muž s brýlemi se dívá na kameru , zatímco jiný muž v modrém triku se na něco dívá .
dva lidé sedí pod stromem a sbírá zelenou zeleninu .
mladý chlapec v modré čepici se dívá skrz dalekohled , zatímco ho jiný chlapec sleduje .
tři muži vaří v malé kuchyni .
mladá dívka v šedé kombinéze lyžuje na zasněžené hoře .
skupina vesních žen shromážděných v tanci .
muž a žena třídí prádlo s latexovými rukavicemi .
mladá dívka sedí na dřevěné židli .
dva pracovníci sváří mříže u rušné ulice .
dlouhovlasý mladý muž skateboarduje na zábradlí za oblačného dne .
na venkovním trhu jsou dva muži , kteří si dávají sníh a špičí z cesty .
muž v bílém triku hraje na bílou kytaru .
mladá dívka ukazuje své kamarády , jak používat dismoj .
malý chlapec skáče z mola do jezera .
dáma v zelené masce na delfínku a právě se zdá být nešťastně .
muž v oranžové bundě a modré čepici leze na zasněženou horu .
malá dívka s blonďatými vlasy si hraje a cáká v bahnité kaluži .
dítě jede na kole po uličce s graffiti .
gymnastka je ponořeno na slavnosti .
lidé jdou po ulici s pouličním stánkem .
muž oblečený v tradičních šatech , který stojí vedle svého psa , který se zdá , že je také .
dvě děti si hrají na kole .
dva muži na opačných týmech hrají fotbal na hřišti .
muž skáče a pózuje na fotku , které leží na zemi .
dívka si dává pití z fontány .
lepptišky stříká vodu během svého běhu .
muž v laboratorním plášti se dívá skrz mikroskop .
blonďatá dívka spí na hnědém gauči .
muž zametá chodník před cihlovou budovou během dne .
tři muži vaří v kuchyni .
muž na lešení před domem se usmívá a pózuje pro fotografa .
dvě dívky v šortkách se drží za ruce v bazénu .
čtyři asijské děti sedí na lavičce a mávají na kameru .
děti jedou na kole v něčem , co vypadá jako výkono .
mladý chlapec v šéfkuchařské čepici a zástěře krájí klobásy v kuchyni .
toto je klaun na stojanu ve základní školy .
usmívající se loď s lodí drží kolo své dřevěné lodi .
žlutý buldozer pracuje , aby pohladil hlínu .
žena v červeném triku jede na bílém koni , který je po stromě .
žena sedí na velmi velké skále a usmívá se do kamery se stromy v pozadí .
tři muži v pestře zbarvených kostýmech jsou na ulici s parukami a parukami .
dívka si hraje v malém bazénu .
dvě děti , chlapec ve žlutém triku a dívka v modro-bílých pruhovaných pruhovaných šatech , se houpají .
muž hází rybářskou síť do mety .
muž v šedém triku , modrých džínách a neonově zelené bezpečnostní vestě stojí na železniční trati s bílým autem v pozadí .
dva stavební dělníci leží na lešení přes nosy .
je tam kapela na pódiu s členy kapely , která má na sobě čepici .
horolezec s trikem zpívá do mikrofonu , zatímco hraje na bubny .
vidět muže , jak si dává věci z nákupního košíku , připravený k prodeji .
muž s holí je na procházce .
žena , která má na sobě bílé tričko , pracuje na lízátko .
dívka v masce jede na ramenou muže po zaplněném chodníku .
dvě dívky , jedna starší a druhá v černém a mladší a druhá v bílém , předvádí stejný rámci před zdobenými balónky .
několik žen předvádí tanec před budovou .
plešatý muž jde po chodníku ve městě a mluví do telefonu .
žena si hraje s loutkami , zatímco malé dítě v kostýmu jde kolem .
skupina lidí sleduje mladého muže , kteří hrají na bubny pomocí kýblů , zatímco nástroje .
dívka s normální ochranným ochranným vybavením na kolečkových bruslích .
malé bílé auto je na vlakovém kole a možná nebo možná zrovna přihrávají ve vlaku za ním .
dva horolezci zpívají a hrají si na tmavém pódiu .
dívka v baseballové čepici , bílém triku a modrých šortkách stojí na skále a vyplňuje les.
dva muži hrají na kytaru před velkým publikem .
několik lidí tancuje se svými podepisy před obrovským domem .
žena a pes prodávají své zboží na staré budově venku .
žena a dva muži , kteří jsou oblečeni , mají diskuzi .
skupina mužů v červeno černých bundách čeká na motorkách .
muž oblečený v bílém dresu s číslem 3 na americký fotbal .
muž prodává svačinu na sportovní akci .
dva muži z zeleného týmu se snaží chytit druhého týmu černého týmu na míč v ragby .
děti závodí , aby se dostali do fotbalového míče .
člověk v modrém je pouze člověk , který hází míč na bowlingové dráze .
několik fotbalistů na hřišti v akci .
mladý muž sedí na skateboardu , drží mobil a pózuje na eskalátoru .
dáma oblečená v modrém běží maraton .
tato kapela se připravuje na vystoupení před publikem v kostele .
8 s číslem 11 iowské &quot; texi &quot; texa &quot; se pokouší chytit . &quot;
dva mužští hráči na ledu zametají cestu před rozbitým kamenem , malý dav přihlíží .
muži hrají fotbal na zabláceném hřišti .
basketbalista v bílých kloboucích se pohybuje , zatímco hráč v červeném se na něj pohybuje .
lidé jdou přes oblouku ve starém městě .
dvě závodní auta , jedna v červené a druhý modré , jedou po boku po závodní dráze , zatímco je sleduje několik diváků .
fotbalista v bílém dresu drží fotbalový míč .
velmi mladý chlapec zírá před tím , jak kouše do malého předmětu .
žena a dítě jdou po ulici .
hokejová hra je hrána s mnoha lidmi , kteří ho sledují .
tři ženy skáčou na míčky v trávě .
afroamerický chlapec v modrých šortkách , černé a červené košili a bílých keckách hraje tenis .
muž a žena v bílých trikách se objímají .
muž mluví s rodinou , která drží nějaký druh pro přístroj , zatímco se na něj dívá a dívá se .
velmi mladý chlapec v zeleném triku leží obličejem dolů na bílé posteli .
extrný cyklista se zastavil , zatímco slunce zapadá v pozadí .
žena zavazuje v zasněžené oblasti s teplým oblečením .
čtyři dívky a žena se učí , jak se nějaké věci .
muž v černo-bílém pruhovaném se snaží zastavit koně .
muž dělá obrázek , na kterém je žena v modrém triku pro něj tisuje .
žena s červenými vlasy je po krk v modré vodě .
dva mladí chlapci pózují s štěně na fotku .
čtyři děti trénují karate , zatímco dva dospělí se dívají .
muž lenoší na červeném gauči v nábytku v ložnici .
skupina lidí mluví u stolů .
dva koně závodí na koních , jeden v modré a červené a druhý v oranžové a hnědé , závodí v pozadí .
červené auto je před dvěma auty v pozadí .
velký býk překonává muže , který je pryč v rodeu s jeho jezdcem , zatímco se snaží zastavit .
muž bez trička jde k žlutém kajaku .
chlapec na střelnici míří a střílí .
dva týmy chlapců hrají fotbal v písku .
dítě v modrém a dítě v bílém stojí na nízké betonové zdi u potoka .
žena maluje květinový design na hliněném hrnci .
lidé jdou po rušné ulici v cizí zemi .
nadhazovač vpravo pro nadhazovače hází .
dva muži , jeden v černé a bílé a druhý v červené , hrají plážový volejbal .
muž stojí na lodi a drží síť .
surfař , který spadl ze svého surfu v oceánu , zatímco se snaží sjet vlnu .
technika připravuje vzorek v laboratoři .
fotbalisté skáčou do vzduchu , aby zasáhl míč s jejich hlavami .
dva chlapci hrají spolu fotbal .
starší člověk přechází ulici s deštníkem v rukou .
skupina běžců běží směrem k dvěma identických mrakarů .
skateboardista jede na betonové zdi , poblíž padá , zatímco se pokouší trik .
lidé hrají hru v bazénu .
muž se líbá na muže , který je také .
muž podepisuje aut. mladý chlapec knihu .
mladý muž v modrém triku jede po zábradlí na skateboardu v městské oblasti .
asiat sedí na železniční trati s bedny .
britský pán , oblečený v plné vojenské uniformě , mává svým kloboukem , v pozadí sedí a dívají se na vodu .
dvě auta jedou po závodní dráze .
muž v černo-bílém dresu drží žluté tyče a připravuje se .
dva lidé leží a líbají se na travnatém trávníku .
velmi malé dítě v džínové kšiltovce jí zelenou jablko .
fotbalisté běží k míči .
muž v černé bundě a kostkovaném klobouku v černo-bílých pruhovaných kalhotách hraje na elektrickou kytaru na pódiu s jiným zpěvákem a kytaristou v pozadí .
muž skáče přes překážku od býka .
žena v modrém triku a bílých šortkách hraje tenis .
muž hraje na koncertě .
muž nese na rameni velkého kovového nosníku .
žena s foťákem hází frisbee pro svého hnědého psa , aby chytil .
je tam muž a žena , který se dívají na požární , nebo druhý velký dřevěný předmět .
dvě dívky si dávají ruce ve fontáně , zatímco lidé prochází kolem .
mokré , usmívající se dítě bez trika pózuje se zvednutýma rukama .
dva muži , jeden v bílém a druhý v modrém , zápasí .
žena v červených bikinách skáče , aby trefil míč , zatímco hraje volejbal na pláži .
oranžové pruhované kotě kouše blondýna na nosu .
žena , která má na sobě žlutou zástěru , vyndavá víčku z velkého hrnce .
dvě děti přechází malý brožý most .
dvě afroameričanky jedou na mopedu po ulici ve městě , která vypadá , že je v dobře s velkou oblastí města .
dva chlapci před sjezdem od sodovky .
cyklista v černém jede po špinavé cestě na horském kole .
žena s tetováním fotí obraz s mobilem .
žena v převážně černém oblečení a bílé helmě jede na kole s rozmazanými stromy v pozadí .
tým cyklistů se kutálí , zatímco poblíž diváci povzbuzují a fotí .
čtyři fotbalisté v černém sráží protihráče v bílém , zatímco za dešti .
běžec se škrábe na zahradě , zatímco se na něj dívá dva kostičky .
basketbalista v bílém dresu s číslem 55 je hlídán hráčem v černém dresu s číslem 10 .
muž telefonuje venku .
profesionální baseballový hráči během hry se všichni dívají na protihráče na pálku .
jezdec na terénním kole dělá otočku v lese během podzim .
tři basketbalisti se snaží získat míč a jeden v červeném dresu se snaží získat míč od chlapa v bílém dresu .
chlapec si drží nohu , zatímco skáče do vzduchu .
dvě děti v pruhovaných svetrech a černých kalhotách jsou venku poblíž hrady .
muž ve slunečních brýlích jede na koloběžce .
malý chlapec , který má na sobě baseballovou pálku , drží za hlavu s baseballovým pádlem , před ním .
šest mužů sedí na poli s dřevěnými bedny .
hnědý pes sbírá dvojdu z kamenného povrchu .
toto je muž ve žlutém , který drží výkozu hnědého koně .
muž v bílém triku a zástěře krájí ptáka .
hispánská žena venku používá sušenku .
maratonští běžci závodí na městské ulici s dalšími lidmi , kteří stojí okolo .
asiatka v klobouku jede na kole .
nějaké děti si hrají venku v hlíně , kde jsou dvě stromy .
starší muž hraje videohru .
dívka na břehu pláže s horou v dálce .
