muž v oranžové čepici se na něco dívá .
teriér běží po hustě zelené trávě před bílým plotem .
dívka v karate uniformě přednáší klacek .
pět lidí v zimních bundách a helmách stojí ve sněhu s sněhem v pozadí .
lidé opravují střechu domu .
muž ve světle zbarveném oblečení fotí skupinu mužů v tmavých oblecích a kloboucích , kteří stojí okolo ženy v saji .
skupina lidí stojí před iglem .
chlapec v červeném dresu se snaží dát na domácí metu , zatímco chytač v modrém dresu se pokouší chytit .
muž pracuje na budově .
muž ve vestě sedí na židli a drží magazíny .
matka a její mladá píseň venku si užívají překrásný den .
muži hrají volejbal , jeden hráč hrál míč , ale druhý se drží ve vzduchu .
žena drží misku jídla v kuchyni .
muž sedí u stolu v jeho domě s nářadím .
tři lidé sedí v jeskyni .
dívka v džínových šatech jde po vyvýšeném kladině .
blonďaté dítě se drží za ruce s mužem v písku .
žena v šedém svetru a černé kšiltovce stojí ve frontě v obchodě .
člověk v pruhovaném triku leze na horu .
dva muži předstírá , že se ženy dívají .
lidé stojí před budovou .
teenager hraje na své trumpety na hřišti při hře .
žena dělá salto na trampolíně na pláži .
muž stojí u skupiny počítačů v baru .
žena používá vrtačku , zatímco jiný muž fotí .
žena v růžovém svetru a zástěře čistí stůl s houbem .
muž krájí větve stromů .
skupina asijských chlapců čeká na maso na grilu .
ženy v tradičním oblečení reaguje původní život .
jeden muž drží hlavu druhého muže a připravuje se na úder do obličeje .
šest lidí jede na horském kole skrz džungli .
dvě blonďaté dívky sedí na římse na přeplněném náměstí .
dítě cáká ve vodě .
tři lidé sedí u piknikového stolu před budovou namalovaným jako univerzity .
tři chlapci stojí na molu v plavkách .
zaměstnanec v obchodě podává ženě tašku , zatímco si prohlíží ryby na pouličním trhu .
hezká žena hraje na harfu .
venku před budovou , v uniformě se dívá na kameru za plotem .
mladá žena se dívá na pizzu .
muž bez trička v šortkách stojí na nějakých kamenech .
dívka v záchranné vestě plave ve vodě .
muž v uniformě a muž v modrém triku stojí před dodávkou .
lidé sedí ve vlaku .
dítě se houpe s nohama ve vzduchu v lese .
muž v červeném triku vstupuje do podniku .
dva muži v plavkách skáčou do vzduchu na středně osvětleném pláži .
batole vaří s dalším člověkem .
otec , dospělých a dvě děti venku , pracují na zahradě , zatímco používají hned na trávě a sází strom .
muž vaří jídlo na sporáku .
muž v džínách si hraje s červeným míčem na pláži .
lidé jdou po chodníku vedle řady obchodů .
wakeboardista předvádí salto , zatímco je ušla na vysoké rychlosti .
velká skupina lidí vyplňuje ulici .
muž na motorce jde do vody .
žena v džínách jde kolem autobusu s národníkem , která se dívá přes její sluneční brýle .
muž v růžovém triku sedí v trávě a míč je ve vzduchu .
auto zaparkovaný na pláži .
dva muži v černém ve městě .
muž ve žlutých kalhotách zvedá ruce .
dva muži v kloboucích , kteří jdou kolem vodní plochy během slunečného dne .
tým roztleskávaček předvádí sestavu na židlích .
chlapec hraje dámu s dospělým mimo záběr , zatímco dívka se dívá .
dav lidí se baví ve veřejném parku .
muž sedí na lavičce a drží svého psa a dívá se na vodu .
chlapec a jeho mladší bratr si spolu hrají na hřišti .
žena v modrém , která se dívá do černé kožené tašky , zatímco sedí na lavičce během slunečného dne , zatímco lidé za ní prochází .
hnědý pes stojí na písečné pláži .
žena sedí s košíkem látek , obklopenou látkou .
muž griluje na svém dvorku .
žena zpívá v klubu s kytarou za ní .
kytarista hraje v nočním klubu na kytaru .
dítě sedí na zahradní židli a dívá se na kameru .
dvě ženy a tři muži se dívají na oceán .
umělkyně s housle hraje na ulici , zatímco žena s modrou kytarou přihlíží .
mladá dívka plave v bazénu .
několik dětí se připravuje na hru přetahovanou .
tři teenageři v metru si hrají .
hnědý pes jde po trávě s vyplazeným jazykem .
lidé sedí v trávě před budovou a dávají si pauzu .
muž bez trika hledí do dálky , zatímco tři ženy prochází kolem kavárny .
dva mladí chlapci dávají ovoce na kole .
muž v černém triku , čepici a džínách hraje na bubny nasedě vzhůru nohama .
mladá umělkyně maluje obrázek ženy na zdi .
dvě členové týmu usa předvádí skok vysoko obklopenými dvěma dalšími členy .
muž míchá hrnec tekutiny v této kuchyni .
chlapec wakeboarduje na jezeře .
muž pracuje na hotdogovém stánku .
velká skupina lidí různého věku a geni sedí spolu venku .
blonďatá žena nalévá pití na baru .
malé dítě v modro-bílém triku šťastně drží žlutý plastový alkohol .
žena s růžovými vlasy oblečená v černém mluví s mužem .
muž v japonském obleku připravuje jídlo pro dva lidi .
dívka skáče přes řeku ze skály .
pracovník se svým nástrojem klečí vedle dvou žen .
starší muž otevírá své ruce a dívá se zmateně .
dítě v bílém stejnokroji cvičí karate .
tři muži ve stejných barevných vestách jsou venku .
žena fotí dítě v růžové čepici , zatímco ji muž nese .
skupina dětí převážně asijského původu sedí v modrých židlích .
mladý chlapec ve fotbalovém dresu brečí do svých dlaní .
šťastná žena připravuje osobě v kavárně .
stavební dělník řídí těžké vybavení na pracovišti .
žena běží po odpalu v ženském softbalu , chytačů jí brání .
muž v pracovním dresu zachází nástroj jiným člověkem .
skupina lidí leze v chladném počasí .
horský lyžař se chystá vyjet horu s modrou helmou .
muž dělá stojku na vrcholu kulaté sochy .
dítě sedí u stolu v restauraci a drží papírovou masku u obličeje .
hnědý pes se brodí do jezera , aby se dostal klacek .
matka učí její dva mladí chlapci , aby se dostali z kamenitého pobřeží do velmi modré vody .
malé dítě jde vedle červených transparentů .
dívka sedí na ozdobném kole s mladším chlapcem , zatímco další dívka fotí .
černý pes skáče ve vodě s míčem .
muž v bílých kalhotách a modrém triku kope do žlutého boxu .
dva indičtí muži se účastní obřadu .
chlapec s nose v nose a píše na svých rukou stojí v videoku .
silueta dva lidé pádlují na kánoi na oceánu během západu slunce .
lidé stojí venku v zaplněném metru a vyhlíží skrz okno .
muž šplhá po zdi s ohněm v ruce .
dva hnědí psi běží sněhem .
na pódiu s malou kapelou hrající na divadel .
dítě v vánočním oblečení se dívá na kameru .
muž sedí vedle počítačového monitoru .
tato dáma má srdce vtipoke a směje se .
lidé v budově , jeden z nich fotí .
čtyři bílí psi s náhubky skáčou přes červenou zeď .
žena v modrém triku drží dítě .
dva lidé sedí na pruhovaných židlích u vody a rybaří .
stará žena pracuje na tkalcovském stroji .
chlapec stojí v popředí a dívá se přes ostatní lidé na kurtu .
muž v modré bundě si sahá po rameni malého chlapce .
tři hnědí psi skáčou na ženu v modrém .
chlapec visí z taxíku , který je z taxíku .
muž v šedém triku skáče přes vrchol písečné duně v poušti .
dítě ve žlutém triku skáče nahoru a dolů .
pracovník ve žluté bundě je připoutaný do práce na budově .
muž v brazilském oděvu mluví s mladými dospělými .
několik piva táhne na baru s vánočními světly na stropu .
muž sjíždí útes přes oceán .
muž v černém jde ke svému náklaďáku ve sněhu .
v mlze skáče po míči .
policista v čepici a námořnické uniformě se usmívá , zatímco má na sobě sluneční brýle před obchodem .
rodina se prochází v parku .
muž v zelené přilbě a žluté bezpečnostní vestě se mračí .
dítě s růžovými provázky na hlavě , které tančí u konfety .
pes s nosem čičí na něco na řece .
muž připravuje své místní stánku pro den .
muž v červeném triku se chystá jít ocas .
mladá žena v bílém drží tenisovou raketu .
chlapec v červeném triku kope do písku se žlutou lopatou .
jedinec , který má na sobě rošnou bundu , je na dřevěné lavičce .
muž v bílém triku se dívá z okna kovové konstrukce .
žena drží malou bílou sochu .
šest dětí bez trika si hraje v přírodní vodě a cákají kolem .
dva lidé jedou na kolech přes horské regionioni .
dívka skáče přes švihadlo na chodníku poblíž garáže .
muž v oranžovém triku a helmě .
malý chlapec si hraje s plastovými bloky , auty a zvířaty , zatímco je dospělý přihlíží .
malá dívka otevírá vánoční dárek .
žena v modrém operuje kameru před dvěma dalšími ženami .
malá dívka se snaží udělat dyfé pohovce .
hnědo-černý pes běží po cestě v lese .
dva psi si hrají u stromu .
námořník v černém kabátu a kalhotách jde po schodech , zatímco se soustředí na psa .
dva muži v zeleném připravují jídlo v restauraci .
muž oblečený v černém koženém klobouku a kovbojském klobouku jde kolem renesananančním festivalu .
pes běží venku se žlutou hračkou .
pes v kombinéze běží ve sněhu .
rodina si hraje na pláži se svým psem .
žena a dítě se objímají , zatímco dítě je postavena .
dva muži a žena stojí venku .
skupina mužů používá polené lodi z vody .
muž pije ze sklenky , zatímco čte noviny .
muž oblečený celý v černém a hraje na piano .
mladý chlapec v modrém dresu a žlutých šortkách hraje fotbal .
muž stojí na kamenné stavbě s rukama jako pták .
pes pije vodu venku na trávě .
dvě ženy v tílkách se dívají na kameru .
muž sedí v holičské židli a připravuje se na jeskyni .
malé dítě v zelených botách si hraje v blátě .
muž používá motorovou pilu , aby vyřezal pařez .
muž sedí u piknikového stolu s tác a částečně zloceným pivem před ním .
chlapec v černém triku a modrých džínách drží červenou baseballovou pálkou .
tmavovlasý muž v brýlích a havajské košili sedí na trávě .
psi běží na psí dráze .
muž s kmenovým tetováním míří na místo přes balkoně .
dva německý ovčák se vrčí na sebe .
toto je skupina lidí , kteří stojí kolem nějaké události .
hnědo-bílý pes přinesl hračku .
muž s bílými vlasy hraje na akordeon uprostřed nějakých budov .
žena s hnědými vlasy sedí na lavičce před kavárnou .
muž vedle kola hraje na flétnu .
dvě děti balancuje na kládě a drží provaz .
muž na motorce předvádí trik na trati .
mladá žena s fialovou látkou se schovává na dřevěném povrchu .
žena v hnědém triku sedí na jasně červené lavičce .
pes jde po kládě přes malou řeku .
mladý muž v bílém triku a zelených šortkách stojí na pařezu .
skupina lidí je celá za deštníky .
muž propaguje s velkou značkou přivázané na kole .
muž hází kládu do vody , zatímco dva psi se dívají .
skupina veslařů hraje na nástroje pod stanem u vody .
pohled na rušné městské ulici .
mladá blondýnka drží bílý provaz za slunečného dne .
dva lidé v modrých tričkách jsou venku s býkem .
černý pes skáče do bazénu .
kovboj jede na zádech koně v soutěži .
železniční posádka předvádí údržbu na železniční trati .
dělník v oranžové vestě používá lopatu .
dva stavební dělníci mají diskuzi na pracovišti .
tři muži vychází kopec .
asiatka v květinových šatech pózuje na mostě blízko její družičky .
mladý muž maluje svou kytaru v kuchyni .
tři chlapci si hrají s potiskem a kbelíky vody .
tři stavební dělníci pokládají chodník .
lidé se procházejí v lese vedle kánoe .
sbor je shromážděna v kostele .
skupina mladých dospívajících skáče v noci pro kameru .
dva muži jedou na kajacích , jeden oranžový , druhý modrý , sjíždí potok .
dva pracovníci roztahují cement na cihlovou budovu .
žena v červeném svetru a džínách sedí s rukama na levé noze .
dva účinkující se bojová umění , který pozorně sledují .
proslov odpočívá a čeká na letišti .
muž ve žlutém kabátě se účastní ohně , chlapec v roce se dívá .
muž a chlapec na skalnaté pláži .
žena na lodi jménem &quot; el el &quot; padan &quot; mává do vody .
chlapec sedí a dívá se z mikroskopu .
mladá bosá dívka v růžových šatech skáče venku .
mnoho lidí sedí venku kolem stanu .
mladík v černém triku s nápisem &quot; asijské duny &quot; 7 hraje na buben , zatímco sedí .
muž prodává věci poblíž silnice na velké hory .
dívka ve žlutém se směje na dívku v oranžovém , zatímco je pozoruje dívku v modrém .
pes skáče přes překážku venku .
pes s černým obojkem se valí v hlíně a s listím .
dva hnědí psi si hrají v drsném muži .
muž s knírem a vousy drží pánvi , který mu vyváží plameny .
muž , který má na sobě úkonidlo , oblečení , se krouží v blížení .
muž v černém triku rybaří na kamenitém pobřeží .
dva psi se navzájem strkají na nosu .
dva muži se zastavují , aby si povídají na chodníku , zatímco projíždí auto .
čínský muž sedí a čeká na zákazníky .
zaparkovaná auta s školním autobusem za nimi .
dvě ženy v podobných tričkách jdou doleva .
malé dítě v oranžové záchranné vestě drží v modrém kajaku ve vodě .
lidé jdou po stezce v parku plné stromů .
tři mladí dospělí mluví v davu lidí , žena se dívá nahoru .
žena a dítě venku před dveřmi s výhledem na krajinu .
černoch a jeho dva bílí kamarádi si dávají hlavu blízko sebe .
dívka v kamuflážových kalhotách sedí na vrcholu lidského domu .
světle hnědý pes běží nahoru .
chlapec pózuje s velkým zeleným v nose .
plešatý muž se věnuje , jak se svým hnědým a černým psem skáče .
dav za rušného dne na ulici .
chrt s náhubkem , který má na sobě žlutou a černé běží po trati .
muž v sandálech sedí na chodníku poblíž nějakých tašek .
muž a žena sedí na metě u plotu a povídají si .
dítě se dívá na kafe v obchodě .
muž pije z žlutého kelímku okolo lidí na rušné akci .
chlapec se opírá o auto s květinami na kapotě .
žena v květovaných šatech mluví s dětmi před dodávkou .
muž na svém svatebním dni .
mladá žena v černém triku a džínách zametá .
žena s kloboukem leze po útesu blízko velkého množství vody .
velký černý pudl běží po trávě s hračkou v tlamě .
chlapec v šortkách dělá trik na skateboardu .
malý chlapec v červených kalhotách stojí na ulici .
žena píše zprávy na svém telefonu , zatímco je obklopen deštníky .
osm mužů hraje na hudební nástroje na pódiu s kytaristou ve světle .
muž v oranžové kombinéze a ladící přilbě pomáhá s modrou hadicí .
muž a dvě dívky předvádějí rybu , zatímco drží rybářský prut před vodou .
muž v červeném triku pozoruje psa na překážkové dráze .
chlapec v červeno-bílých plavkách pozadu v krásném bazénu .
asijská žena si upravuje vlasy dozadu .
starší žena a malé dítě v růžovém triku si hrají s barevnými kostkami .
malý černý pes skáče přes brány .
hnědovlasý muž v zeleném triku hraje venku na trumpetu .
muž mluví do telefonu s nohama nahoře .
skupina dětí sedí na modré podložce , zatímco jedí z misek .
černý chlapec sedí v písku .
malý pes sleduje dva velké psy , jak si hrají na poli .
lidé sedí v kruhu před velkou budovou .
jeden pes skáče , aby chytil míček , zatímco druhý přihlíží .
blonďaté dítě se houpe na houpačce .
jeden muž a dvě ženy mají diskuzi přes bílou víno .
asiat vaří venku jídlo .
hnědý pes se chystá chytit zelené frisbee .
fanoušci fandí , zatímco kapela hraje píseň .
mladý chlapec stojí vedle písečné sochy pyramidy .
tři malé děti jdou po travnatém dvorku .
muž znovu na uměleckém vozíku .
muž na kole jede na hoře .
chlapec v modrožlutých holinách běží po hlíně .
žena v oranžové bundě sedí na lavičce .
muž dělá trik na skateboardu .
muž v uniformě bojového umění ve vzduchu .
žena prodává tašky na chodníku .
dva fotbalové týmy jsou na hřišti .
dítě v modrém triku skáče z lavičky .
brankář na žlutém poli se snaží vstřelit gól .
skupina mladých lidí se fotí v mexickém prostředí .
mladý muž skateboarduje z růžového zábradlí .
mladý chlapec skáče z lane na menší posteli .
dva lidé v podivných kostýmech , jeden modrý a druhý fialové , stojí na silnici .
muž běží v modrém triku s číslem na něm.
dělník v asijské továrně pózuje na kameru .
muž , který vypadá , že běží maraton a dává palec nahoru .
basketbalisté střílí na gól během hry .
fotbalista v oranžovém dresu se usmívá a drží fotbalový míč .
dva z kopce na skateboardu se dívají , zatímco se ostatní dívají .
tým v bílé a zlaté na střídačce fotbalového hřiště .
malá dívka tlačí své koloběžce po travnatém poli lemované stromy .
skupina asijských dětí oblečených v bílých tričkách a kloboucích vystupují s davem se dívá .
chodci jdou po ulici a dívají se na dítě v kartonové krabici .
hnědý pes běží po písečné pláži .
dva muži v vojenských uniformách stojí vedle ženy .
dalmatinová posádka během recepního auta , kde se snaží vyspětovat nákladní vlajky a s vlajkami .
cyklista skáče přes překážku .
pár sedí na bílých zahradních židlích a usmívá se do objektivu .
malé děti jsou na malé vlakové atrakci .
surfař v modrých plavkách jede na vlnách .
chlapec skáče na svého fotbalového hráče .
dva mladí muži na opačných fotbalových týmů soupeří o míč na fotbalovém hřišti .
lidé jdou po dlážděné sjezdovce obklopené čínskými prodavači .
mladý chlapec v bílých kalhotách skáče z gauče .
chlapec v oranžovém triku lije nohu z tašky .
žena v hnědých sandálech a modrých džínách , bílém triku drží dítě pod vysokým stromem .
tři lidé se usmívají a drží politické cedule .
policista stojí vedle auta na městské ulici .
dva muži v kloboucích .
chlapec ve vzduchu se snaží kopnout do fotbalového míče .
mladý chlapec s modrou čepicí má hlavu dolů .
zrzavý muž s dredy sedí a hraje na akustickou kytaru .
muž jí sendvič se svou dcerou na klíně .
afroamerické dítě drží něco , co je na obrázku je napsáno tělesa .
žena řídí dav lidí s loukou .
diváci v kostýmech sledují , jak policista , který má proslov a muž v obleku drží misku ovoce .
dav dárek na baru .
dívka v bílém a dívka v zeleném prochází kolem modrého auta .
muž používá elektronický stroj .
člověk surfuje na vlně v oceánu .
vojenský policista zkoumá něco .
nevěsta a ženich se líbají pod nevěstou .
policisté stojí v pozadí , zatímco mladý muž s červenou šálou si zakrývá obličej .
černo-bílý pes skáče přes prudkou překážku na soutěži .
žena ve svetru si čte knihu v jejím domě .
několik dospívajících se dívá přes zábradlí v tmavé místnosti .
muž v bílém triku začíná vylézt na skálu .
dospívající chlapec se protahuje v kuchyni a můžeme vidět část svého břicho .
lidé drží různé typy piva nad různými druhy bubnů .
tři farmáři vyfukují rýže na rýžovém poli .
dvě ženy a muž se dívají na knihu .
tři děti jsou zobrazeni na nohy , zatímco stojí poblíž nepořásného provázku .
kuchař pózuje na kameru , zatímco vaří .
mnoho lidí na ulici protestuje používající používat jako byt .
mladistvý skáče do kopce se svým kolem .
malá dívka běží na břehu pláže .
bílá kachna mává křídly ve vodě .
dva muži vypadají , že mluví , zatímco stojí před nákladním sedadlem a za nimi stojí čtyři lidé .
žena v růžové sukni drží mimino .
hokejista ve žlutém dresu brání gól .
muž jde kolem velké cedule , na které je napsáno &quot; ex . &quot;
tři chlapci v zelených tričkách a béžových kalhotách pózují na vrchu skluzavky .
muž tancuje se psem mezi nohama .
bílý pes běží v mělké vodě .
hráč s ohrnutím pochodují s kapelou .
skupina dětí si spolu hraje na oploceném dvoře , zatímco se dospělý dívá .
skupina žen hraje na hudební nástroje .
malá dívka ve fialových kostkovaných šatech leží na podlaze a brečí .
muž s šedými vlasy si holí vousy .
dva černí psi , černý pes a bílý pes ve sněhu .
muž v basketbalovém dresu s miami skáče , aby chytil střelu .
žena sedí venku před svým domem s modrými dveřmi a užívá si do vzduchu .
děti sedí na muži v obleku banánů .
šedobílý pes skáče přes vodu v písku .
dav se shromáždil kolem vodní fontány v dešti .
několik starších mužů , někteří v tradičním šátku na rohu ulice .
mladý pes se dívá na psa ve sněhu .
fotbalista ve zlatém dresu blokuje míč od protihráčů .
žena v černém triku plete s fialovou přízí .
čtyři ženy asijského původu mají na sobě zlaté šaty , zatímco vystupují baletní sestavu .
člověk hraje na jedinečné nástroj .
dívka v černém sportovním oblečení s číslem 110 na dresu běží přes trávu .
dítě na běžkách s číslem 93 .
starší pán a mladá dívka se připravují na puzzle .
filmová posádka filmuje mladého afrického chlapce ve žlutém triku .
ulice osvětlený most s cyklistou a nějakými auty .
muž jede na býkovi v býkovi .
chlapec skáče , aby chytil tenisový míček svojí raketou .
děti váží zeď , zatímco se dva další lidé dívají .
lidé jdou kolem kempu s palmami v pozadí .
malá dívka kope do černého předmětu na hodině karate .
dva muži se snaží vzít z vody na cestě z pneumatiky .
dva muži tančí breakdance , v davu se dívá .
pracovně oblečená žena stojí na pódiu a o něčem diskutují .
žena leží na gauči a směje se .
špinavá podlaha se snaží u sebe , jedna černoška .
er skáče přes plot .
tři psi si spolu hrají na poli .
dvě malé děti jsou na písku .
usmívající se chlapec si hraje v listí mezi kachny .
tito čtyři lidé stojí venku a tři psi .
zatímco návštěvníci na návštěvníci na reagují na břehu v směru více atrakce .
dívka , která má na sobě triko , má otevřenou pusu .
kmenová skupina naplňuje vodu v poušti .
muž stojí na městské ulici .
hejno ptáků letí s jídlem v jejich dírech .
dva muži jedou na farmě , zatímco vede svůj hrnec .
dva lidé stojí u vrcholu hory .
mladá dívka si užívá , zatímco dělá sněžný anděla .
tři muži se usmívají na kameru a ukazují své útošky .
člověk píše na tabuli v prázdné třídě .
muž v černém triku sedí u stolu s otevřeným notebookem před ním .
čtyři lidé odpočívají na travnatém kopci s výhledem na kamennou údolí .
chlapec s skateboardem skáče do vzduchu po kolejích .
muž v oranžovém triku hraje tenis .
pes s červeným obojkem medví zuby na psa s modrým obojkem .
chlapec si venku užívá letní den .
pracovník v oranžovém pracovním obleku klečí a kontroluje kus nějakého stroje .
muži v kovbojských kloboucích stojí na rodeu .
dva psi ve sněhu a jeden má něco v tlamě .
zaměstnanec si dává pauzu od práce , aby si dali pauzu .
béžový pes běží za bílým psem a drží žlutou hračku .
hokejista v bílém dresu s klackem .
muž v bílém triku se zlatými hodinkami si hraje s kruhem .
černý kůň strká hlavu přes plot a snaží se dosáhnout na trávu .
v závěsu předstírá , že se snaží udržet své ruce , ale tak , že se kouří .
dva muži a dívka se smějí .
dítě se naklání přes vystavené z modrožlutého plastového , zatímco dospělý přihlíží .
černý pes se prochází na sněhu s míčkem .
mladá dívka stojí vedle žluté kočky na kuchyňském pultu .
dvě děti si hrají na hřišti .
tenista v zeleném pruhovaném triku drží ruku u pusy .
chlapec v červeném obleku si hraje ve vodě .
dítě v červené bundě a čepici drží velký kus sněhu .
dva policisté v oranžových bundách stojí před bílým stanem s diváky .
dva lidé stojí vedle stromu na zemi .
dva muži sedí u kamenné budovy .
brunetka s brýlemi drží blonďaté dítě v červeném svetru a žlutých botách .
černobílý pes si hraje s bílým míčem .
dva lidé se líbají na chodníku před lávkou , zatímco lidé prochází kolem .
žena hraje volejbal .
dva velcí psi bojují na prašné louce .
hnědý pes skáče přes překážku .
muž v pruhovaném triku kouří cigaretu na ulici .
malá dívka drží malého chlapce na klíně .
muž se snaží srazit velmi na krásném býkovi , který je poledne .
děti bojují , aby se přetahují o bojovou bitvu .
cyklista se opírá o horské kolo kolem zatáčky na hliněné dráze .
dva lidé a vodítčí krávu u domu .
mladý chlapec se učí , jak jede na kole se svým otcem .
chlapec v červeném triku a černých šortkách zametá příjezdovou cestu .
africká rodina stojí před nějakými domy .
muž hraje na nástroj vedle stromu .
dvě ženy se drží za ruce nad stolem a usmívají se na kameru .
pán venčí hnědého psa po trávě .
baseballový hráč v černém triku právě odpálil hráče v bílém triku .
žena drží velkou dámu pro děti v košíku .
dva psi , jeden s tenisovým míčkem v puse , běží vysokou trávou .
dva dospělí a dvě děti sedí na lavičce v parku .
žena na travnatém poli fouká do památníku .
muž prodává brambor na skupinu lidí .
skupina lidí na ulici se shromáždila , aby poslouchal akordeon .
muž sedí na lavičce a asistuje své ipodu .
starý muž v metru má na sobě těžké oblečení a čte noviny .
starší muž v brýlích připravuje maso .
muž předvádí trik na kole u pedály , zatímco stojí na pedály .
muž na pláži dělá písečnou sochu .
několik lidí v parku jí u piknikového stolu .
dvě ženy jsou připevněná k stromu v nějaké stavební práce .
kovboj v rodeu se snaží vzít na druhého .
pes skáče skrz divoké překážku .
obézní žena s dlouhými černými vlasy v růžovém triku se jmenovkou si nanáší rtě .
muž opravuje kolo malé dívky .
dvě dívky ve zdravotních sukních tančí před nějakými muzikanti na ulici .
žlutý pes nese klacek u vody .
dívka ve svetru blokuje slunce .
rockový koncert probíhá .
tři ženy v jasných barvách a čelenkách drží smetí karty .
hnědý pes hrabe v hlíně .
mladý chlapec v bílém pruhovaném triku a čelence drží tenisovou raketu .
dva psi běží od kamery v lese .
dívka si hraje ve fontáně s oblečením .
tři mladí sumo zápasníci stojí a poslouchají brčka .
dva turisté kontrolují kládu u strany lesní cesty .
tři hráči , kteří nosí tým proti zemi .
dva chlapci přechází ulici ve městě , zatímco kope do červeného fotbalového míče .
muž drží druhého s zády .
bílý pes na skalní stěně se otáčí , aby něco zsila , v pozadí je nevidě .
chlapec jede na skateboardu na rampě .
dlouhovlasý muž hraje na piano .
tři atleti drží kytici stojí na místě .
dva běloši v červených šatech .
mladý chlapec visí na oblečení .
malá dívka v růžovém se drží tyče .
muž v zeleném skáče na své motorce .
žena si hraje s dvěma mladými chlapci v parku .
čtyři lidé hrají fotbal na pláži .
dvě dospívající dívky se objímají , jedna má na sobě cyklistickou helmu , v pozadí jsou cyklisté .
dva středně velcí psi běží přes sníh .
žena stojí na zeleném poli a drží bílého psa a ukazuje na hnědého psa .
stůl plný zarámovaných obrázků na venkovním trhu .
dva lidé sedí u stolu venku u zdi a dělají obličeje .
dva muži s piercingy na piercingy se usmívají .
dítě leží na béžovém koberci a směje se .
muž a žena sedí s roztaženýma rukama a všichni jsou .
dvě ženy zápasí v dětském bazénu .
muž v bílém triku jde s nápojem v ruce .
siluety lidí se opírá o jezero s pomalovaným nebem .
několik lidí sedí u stolu ve formálním oblečení .
dvě dívky ( jedna v modrém a druhá v růžovém ) závodí na kolečkových bruslích .
čtyři lidé sedí na hromadě kamenů .
skupina lidí dělá triky na motorce .
cyklista v závodním vybavení jede lesem .
muž v zeleném triku jde po pláži a nese své tenisky .
několik mužů stojí kolem starožitného závodu .
dva muži pracují pod kapotou bílého závodu .
děti skáčou z kraje do bazénu .
muž na okraji zdi se chystá padat .
žena v pruhovaném oblečení na kole .
dívka v černém pózuje na kameru .
muž v šortkách stojí u vody .
čtyři černí muži sedí na schodech kostela .
jeřáb uprostřed hromady suti .
gymnastka v červeno-bílém je uprostřed ručník .
starší dáma v zeleném svetru vybírá zeleninu .
dva muži vyrábějí věci v dílně s nástroji .
učitelka v bílém a malá dívka ve žlutých šatech si hrají s kostkami .
malé dítě spí v posteli s otevřenou knihou na hrudi .
žena jí v trávě na krásném dni .
muž jde po dlážděné ulici vedle budov s červenými koly .
žena v klobouku dělá chléb .
osamělá žena , která používá velkou náhodu a uhodu , zatímco stojí v poli .
muž v karate předvádí před dvěma rozhodčími .
muž ve formálním oděvu hraje na piáno na chodníku ve městě .
starší muž sedí na židli a jí nějaké svačinu .
žena v bílém triku pracuje za pultem v kavárně .
muž v pracovním oblečení stojí na zadní části nákladního auta .
dvě děti se dívají na koně skrz malý plot .
okno s nějakým designem na ní .
žena v jasně růžovém kabátě stojí před obchodem s ženou , která má na sobě fialovou bundu .
kovboj objímá svou ruku s kapelou .
muž ve žlutém triku a muž v tmavě modrém triku mluví .
tři asijské děti sedí na gauči s jezdeckým vozem v pozadí .
dívka v červeném triku skáče , aby chytil tenisový míček .
muž pózuje s zeleným jeřábem .
muž zapaluje lahve s dalším člověkem , zatímco se usmívá v restauraci .
muž nakládá krabici s hodně pečenými preclíky .
muž v černé bundě hraje na kytaru ve veřejném prostranství .
taneční skupina vystupuje v číně .
muž stojí na skalnatém útesu a dívá se na vodní hladinu .
policista sleduje ženu z autobusu .
dva policisté středního věku sledují parkoviště v noci .
dva muži v modrých tričkách se dívají na fotbalový zápas .
skupina mužů v modrých uniformách stojí spolu .
mladá dáma dělá jógu na pláži .
velký dav lidí stojí v parku a několik lidí hraje na hudební nástroje .
muž s kloboukem z balónků dělá zvířátka .
muž griluje maso na venkovní jámě .
dva muži prodávají ovoce na trhu .
bruneta v bílých bikinách lije nápoj do muže .
chlapec ve slunečních brýlích běží za pouti .
ruka v rukavicích drží něco , co vypadá jako ochutnávky proti kládě .
muž v kostkované košili ukazuje černou scénu rukavicích .
dva muži v bílých plastových židlích sedí ve dveřích .
mladá dívka v červených šatech má na sobě černou kovbojskou čepici .
muž v červeno-bílém fotbalovém dresu stojí na hřišti s žluto-modrým fotbalovým míčem .
lidé skáčou přes horu na laně .
lidé se dívají na účastníci v maratonu .
lidé na laptopech před velkým oknem .
dj zaneprázdněnějící na práci , zatímco se na něj zapaluje .
muž v rukavicích nese kukuřici na poli .
fotografie je focena před zrcadlem kavárny .
muslimská žena drží balónky na akci .
žena sedí v oploceném prostoru s kočkou a dvěma králíky .
žena sedí u cihlové zdi uvnitř budovy .
tři mladé ženy stojí na červených plyšových židlích .
žena v modrém triku jde ve vesnici .
šest dětí sedí na schodu s notovými korálky a pastelkami .
béžový pes si hraje s klackem na pobřeží .
dva psi se kočkují na třetího psa , který má vyplazuje jazyk .
dítě na motorce se usmívá .
šest lidí je shromážděno , aby jít velkou večeři .
santa clause je vyfocen na slavnostní akci .
voják pochoduje v new yorku .
žena v modré helmě a červených kalhotách jede na motorce .
několik mužů má na sobě bojové umění , zatímco vystupují na místě .
mladá žena a muž oblečení v kostýmu se opouští klacky s skupinou lidí v pozadí .
muž v uniformě jde po ulici se dvěma auty a stromy .
mladá žena leze po skalní stěně .
starší muž ve světle modré bundě pracuje na kraji silnice .
lidé se dívají přes několik barevných papírů na stole .
muž zpívá a hraje na kytaru do mikrofonu .
dva muži sedí v restauraci .
dvě ženy v šortkách běží po pláži podél vody .
stavební dělníci vedou diskuzi u železničních tratí .
pohled zóně , kde je vidět muže v černé zástěře a bílé kšiltovce , který stojí uprostřed snímku .
skupina lidí si hraje na předmětu .
malá dívka v modrém oblečení leze na kovové zábradlí na ulici .
skupina mužů sedí a baví se za nějakými zelenými ovocem .
muž ve žlutém oblečení stojí za mikrofonem pod stanem .
hnědý pes s fialovým frisbee v tlamě .
vypadá to , že muž trénuje své bojové umění , který se dívá u vody .
žena s nápojem a žena s mobilem .
dítě v červeném kabátě mává rukou ve vzduchu , zatímco leží ve sněhu vedle červených plastových sáňkách .
žena sedí vedle své kabelky a sleduje psy v parku .
tři muži stojí na pódiu , jeden má na sobě klaunský makeup a drží kytaru .
žena v kmenové vesnici procesu procesu v kmenové vesnici .
žena v červených šatech tancuje s mužem v obleku .
dva malí psi následují většího psa s tenisovým míčkem .
muž s hustými vousy a kšiltovkou sedí na lavičce v parku .
africký kmene stojí na zahradě s lesem v pozadí .
mladá dívka se snaží kartáčat kozu .
asijští lidé sedí v restauraci se žlutými židlemi .
holčička jí sušenku , zatímco sedí na vysoké židli a má bryndák .
šedovlasý muž v černých rukavicích se pohybuje po trávníku .
žena si čte knihu , zatímco sedí v řadě červených židlí .
dítě tleská , zatímco jede na ramenou ženy .
rodina jde po chodníku skrz sníh , zatímco muž sedí na straně se svým papírem .
kočka sedí na vrchu obchodu s nápisem .
muž v růžovém triku a černé bundě se sluchátky .
mladý muž se chystá hodit fotbalový míč .
muž a dívka jdou po chodníku .
žena s růžovými vlasy se shýbá na chodníku a drží růžové psy .
muž v obleku drží nápoj v ruce a jde po chodníku vedle autobusu .
muž skáče s kamenným útvaru v pozadí .
člověk v červené bundě s černými kalhotami drží duši .
žena si dává ruku na člověka , který sedí na vozíčku .
muž v bílé zástěře vaří něco s vejci venku pro ženu v béžové bundě .
žena s krevemi , která telefonuje a smutně čeká na přechodu .
skupina mužů jde po ulici ve městě .
cesta vedle zajímavého místě se spoustou sloupů .
skupina lidí v černém stojí na molu poblíž dlouhé budovy .
muž nese několik tašek s pivem .
muž středního věku sedí a hraje na akordeon .
dívka se zelenými vlasy , vlasy a sluchátky stojí venku .
mladá dívka v růžovém triku na pláži běží k oceánu .
skateboardista v černém triku a džínách bruslí ve městě .
muž v bundě fotí velkou budovu .
lidé na střídačce fotbalového zápasu .
na tomto obrázku je rodina , která je čtyři obalena přes rušnou ulici ve městě .
skupina lidí jde po ulici na slunci .
ulice blízko stupu s několika lidmi , včetně muže v hnědém kabátu a slunečních brýlích s rukou na obličeji .
nějaké rostliny jsou u okna .
tento hráč s modrou helmou na pálku a právě odpálil míč během basebalové hry .
žena ve zlatém kabátě peří , aby chytil metro .
nějací lidé sedí na lavičkách pod řadou stromů před budovou .
muž v obleku sedí na autobusové zastávce .
afroameričan obklopený prázdnými bílými kýbami a tmavé bedny se rozděšenými bedny odměrné ruce .
mladá brunetka jí a něco pije .
muž v obleku a klobouku hraje na ulici na kytaru .
žena v červené vestě pracuje na počítači .
lidé , kteří stojí okolo v prostor , jdou a smějí se do obličeje .
muž , který používá v koupelně , aby si zavázal kravatě .
hudba je zde několik jedinců , zatímco je šťastná dav sedí a poslouchá .
dva mladí muži jedou na velmi malém koni plnou bramborů .
žena v šatech jde po ulici kolem staveniště .
zákazník v samoobsluze si prohlíží zákaznice , který si kupuje alkohol .
muž se slunečními brýlemi operuje na stavbě a reaguje štěrk na zem .
dítě si hraje se svými hračkami a dívá se na černo-bílou kočku .
dospívající dívka nese kytaru v lese .
muž s batohem jde po ulici .
dva muži se baví před obchodem s bledníkem v rošinách .
žena v černém drží něco v tlamě .
skupina lidí sedí venku okolo malého , krátkého stolu .
muž jede na kole po rampě .
žena v černém tílku a kříži hledí do dálky u západu slunce .
tři mladé dívky jdou spolu po chodníku .
žena s dlouhými vlasy je na obřadu .
muž skateboarduje na silnici , zatímco jiný muž se dívá z chodníku .
muž v černém koženém kabátu stojí před nápisem .
muž a žena spolu zpívají venku .
mladá dívka s kudrnatými blonďatými vlasy a v bílém topu leží v trávě a drží květinu .
mladá ženská fotbalový tým v zelených uniformách předvádí protah .
žena vystupuje na veřejném prostranství za žlutou páskou .
muž se krčí , zatímco dělá práce , zatímco holuby v pozadí .
skupina mužů stojí na poli plném černých míčů .
rušný den na místním městském kurtu .
muž s cigaretou v puse opravuje talíř s jídlem .
dvě skupiny plavců jdou ven .
lidé sedí na lavičce na náměstí , na kterém jsou vyděšené předměty , včetně lampy a šaty stojí opodál .
dělníci obklopují díru s kbelíkem .
muž bez trička v černých šortkách stojí na kamenitém pobřeží k velké vodní ploše .
strážník se dívá , zatímco je na šipku .
lidé hrají kulečník , jeden muž v modrém triku a ostatní ženy mají své hlavy , ale hlav .
lidé stojí před sochou obklopenou vodou .
žena se dívá , zatímco muž se složenýma rukama mluví .
muž středního věku v bílých šortkách a žabkách se dívá nahoru po silnici .
dva muži v tmavě oranžové pokrývce a sandálech stojí u velké reflexní sochy .
dva lidé tráví čas na své lodi .
muž a žena stojí na ulici ve městě .
hasiči vynořuje z metra .
čtyři muži , tři z nich mají na sobě čepice , sedí na modrozelené podložce .
toto je velká skupina lidí sedících venku na lavičkách .
muž v červeném triku jde kolem tyrkysové a bílé kostkované jídlo , které je napsáno 38.
doktor předvádí nějaký operaci .
starší muž s cigaretou v puse a kšiltovce si prohlíží svůj foťák .
malý orchestr hraje s otevřeným deštníkem před otevřeným housle .
muž v červeném obleku tančí s paní .
dva lidé se dívají v noci na světla ve městě .
dva motokrosové cyklisté v ochranném oblečení , jeden ve vzduchu po skoku a druhý se dívá dolů na jeho motocyklu .
několik mužů v oranžovém se shromažďuje na venkovní akci .
dvě mladé dívky běží po chodníku před cihlovou budovou s banory .
dva osoby lezou po strmé hoře .
dítě leží na zemi vedle kočárku .
pes tahá muže a ženu .
mnoho lidí na trhu se dívá na různé věci .
dva mladí muži hrají na pódiu na elektrické kytary .
potetovaný muž nalévá pivo z lahve do mladé muže .
dva lidé stojí venku vedle nafukovací hraček a popelnice .
čtyři lidé jedou na kolech po cestě poblíž rušné ulice .
žena v růžovém triku a s brýlemi .
žena v červeném triku zvedá ruku , aby projli dav pod ním .
chlapec v bílých šortkách skáče do jezera nebo řeky .
malá dívka se dívá skrz dalekohled na pláž .
několik stavebních dělníků v oranžových bezpečnostních vestách kope do země .
člověk v kapuci stojí před budovou .
stavební dělníci se perou o stavení .
muž jede na koni s dalšími muži , kteří dělají stejnou za ním .
afroameričan jde po ulici .
dvě jeptišky pózují pro fotku .
žena s neonovými sluchátky píše do sešitu .
žena v zeleném triku s vyhrnutým rukávem mluví do telefonu .
malé africké dítě nese malé dítě na zádech .
skupina lidí sedí na židlích .
člověk s šátkem stojí na ulici před svými věcmi .
orientální člověk v červeném triku a černých kalhotách se krčí přes kabelku na betonové římse .
černý pes a hnědý pes s míčem .
muž s černou vestou drží model letadla .
muž na poli s letadlem .
muž v obleku a kravatě a žena s kufry čekají v londýně v londýně .
dítě jde po chodníku s několika americkými vlajkami .
černý pes běží po zelené trávě s hračkou v tlamě .
orientální cesta čeká na svou řadu v obvodu .
pes se otáčí na trávě , aby chytil míček .
skupina studentů sedí a poslouchá reproduktoru .
lidé jedou v noci po ulici na koloběžkách .
velký šedý mořský plochy a muž na kole .
muž v oranžovém triku a blonďatý chlapec jedou s dalšími lidmi na autě &quot; tahá . &quot;
mladý muž a žena poblíž velké kovové sochy .
loď s červeno-modrými nehty na molu .
muž v černé čepici fotí na rušné ulici .
muž stojí na rušné ulici a dívá se na hlavu .
žena v černém má malou dívku ve žlutých šatech na ramenou .
skupina lidí na ulici nastavuje hudební nástroje .
spadlý motorkář je poražen jiným .
tři lidé jdou po horské cestě , zatímco jedna žena se dívá na svůj foťák .
několik asiatů v černém oblečení v nějaké stanici .
žena v červené sukni jde po ulici s graffiti v pozadí .
gymnastka v modro-růžovém oblečení předvádí sestavu .
lidé jsou zachyceni v kašně , žena v bílých šatech sedí na kraji a dívá se .
muž sedí na lavičce pod velkým stromem .
tři muži v červenobílých pruhovaných košilích , bílých kalhotách a černých čepicích drží vlajky .
lidé obdivuje umění .
rušný obchod s papírovými lucerny a zákazníky .
tito lidé lezou po schodech na horu .
malé dítě v modrém oblečení se dívá na nějaké stromy v dálce .
lidé se dívají na děti v obchodě .
muž v klobouku hraje na ulici na buben .
chlapec stojí se třemi dívky .
usmívající se muž s batohem drží své pěně před chlapcem v brýlích .
čtyři muži jsou venku a dívají se přes zelený most .
žena lenoší na ručníku před lidmi , kteří si užívají modrou vodu .
dospělý německý ovčák následuje za běžícím ovčákem .
zákazníci a bistí jídlo , které je zachycen v králí a rozkvetlém městě .
afroamerický muž se věnuje proti nepořádek .
policista na kole čeká na chan .
skupina mužů sedí okolo stolu .
skupina středoškolních lidí včetně staršího muže , kteří mají v parku nápoje .
žena mluví s kamarádem , zatímco pes venku za slunečného dne .
mladý muž v šedo-černém triku a bílé čelence .
dva lidé jedou na motorce podél jiných jezdců .
dvě ženy ve vojenské uniformě stojí s dalšími vojáky ve formaci .
tři dívky se smějí na fotku .
žena , která má na sobě černé brýle a žlutou bundu , se dívá na zmateně , zatímco sedí na béžové lavičce .
zrzavý mladý muž pije z fontány ve tvaru ženy .
dva muži a žena jdou po městské ulici .
muž středního věku s červenými vlasy a brýlemi drží miminko .
mladý chlapec v červené čepici jede na koni .
dva chlapci si hrají na chodníku .
malá dívka v černém plavkách drží lopatu na pláži .
starý muž v klobouku a kabátu sedí na gauči .
dva chlapci se dívají na oblohu a mávají rukama a jsou oblečeni v teple .
mladý pár sedí na chodníku a relaxuje spolu .
mladík v košili a kravatě se krčí a ukazuje znak míru .
tři lidé sedí u stolu venku u baru geoma .
chlapec v černém triku a červeném náračníku visí vzhůru nohama , zatímco ostatní lidé se dívají .
muž jde před barevnou nástěnnou malbou .
mladý muž jde s jiným mladším mužem , který se prochází na tři dívky , které zrovna prochází .
muž zastřihává palmový strom na nádvoří kavárny .
pět lidí jde nahoru po schodech kolem ženy v růžovém triku a hnědé sukni .
skupina lidí na venkovním trhu .
dva chlapci jedí oběd ve venkovním prostoru s mnoha dalšími lidmi .
žena v džínové bundě jde po chodníku .
muž řídí čtyřkolový vůz se čtyřmi pasažéry jedoumi na přední části a muž sedí na straně .
muž v modrozelené košili čte noviny .
chlapec v kočárku má na sobě zelené tričko a drží knihu .
dvě děti sedí vedle sebe a jedí odměr .
lidé jedou na kolech po ulici a jsou všichni mají na sobě helmy .
dav lidí jede na kolech .
muž , který sedí na nástupišti s kolečkem , je tažen u šipku .
muž na kole šlape do oblouku .
barevně oblečený mladý muž s vypadá , že sedí a kouří cigaretu .
dva muži v oblecích pod deštníkem a před graffiti .
starý hubený muž ve špinavém bílém triku jede na kole po ulici .
muž na koni se snaží chytit mladého býka .
kovboj se snaží chytit tele , zatímco jede na koni .
dva cyklisté v helmách jedou kolem nějakých prázdných venkovů .
muž se opírá o něco mimo pytel .
muž v motorovém vozíku jede na páse v parku .
člověk s tetováním se dívá na fotce na digitální fotoaparát nebo telefon .
muž v černém triku a džínách stojí na chodníku a dívá se na kameru .
chlapec a dívka stojí spolu na chodníku , zatímco se dívají na předmět .
několik lidí v modrých oblecích a jeden v sukni a černé blůze .
žena a pes sedí na bílé lavičce blízko pláže .
dvě ženy jdou po hlíně před velkou budovou .
skupina mužů a dítě v bílých tričkách stojí na silnici .
žena v černém a s černou taškou na chodníku .
skupina mužů sedí okolo stolu a povídají si .
malba na straně budovy .
asiat v rukavicích pracuje u stánku s jídlem .
žena sedí u stolu a pracuje na svém počítači .
člověk se dívá na počítač na stole s telefonem a krabicí .
muž sedí na židli a dívá se na lidi , kteří se prochází .
dva lidé v kloboucích stojí na poli , aby se podívali na plodinu .
někteří skáčou přes vysokou tyč v baru .
muž v botách a kovbojském klobouku sedí na koni , zatímco diváci sedí na tribunách .
dvě mladé dívky sedí na ulici a jedí kukuřici .
tři děti v fotbalových uniformách hrají fotbal na fotbalovém hřišti , zatímco jiný hráč a dospělý stojí v pozadí .
malé dítě se špinavým obličejem drží stará žena .
muž s brýlemi se dívá na kameru , zatímco jiný muž v modrém triku se na něco dívá .
dva lidé sedí pod stromem a sbírá zelenou zeleninu .
mladý chlapec v modré čepici se dívá skrz dalekohled , zatímco ho jiný chlapec sleduje .
tři muži vaří v malé kuchyni .
mladá dívka v šedé kombinéze na zasněžené hoře .
skupina veslařů shromážděných v tanci .
muž a žena třídí prádlo skrz prádlo s latexovými rukavicemi .
mladá dívka sedí na dřevěné židli .
dva pracovníci sváří mříže plotu poblíž rušné ulice .
dlouhovlasý mladý muž skateboarduje na zábradlí za oblačného dne .
na venkovním trhu parkuje dva muži lopatou a vytírá sníh z cesty .
muž v bílém triku hraje na bílou kytaru .
mladá dívka ukazuje své kamarády , jak používat displejovou kameru .
malý chlapec skáče z mola do jezera .
žena v zelené masce na dupanu a právě vypadá velmi nešťastně .
muž v oranžové bundě a modré čepici leze na zasněženou horu .
malá dívka s blonďatými vlasy si hraje a cáká v blátě .
dítě jede na kole po uličce s graffiti .
gymnastka je zatažen na akci .
lidé jdou po ulici s pouliční prodavačkou .
muž v tradičních šatech , který je oblečen jako oděvu , zatímco stojí vedle svého oblečení , který se zdá být dobře .
dvě děti si hrají na kole .
dva muži na opačných týmech hrají fotbal na poli .
muž skáče a pózuje pro fotku , kteří leží na zemi .
dívka si dává pití z fontány .
jeptipatel najít vodu během svého běhu .
muž v laboratorním plášti se dívá do mikroskopu .
blonďatá dívka spí na hnědém gauči .
muž zametá chodník před cihlovou budovou během dne .
tři muži vaří v kuchyni .
muž na lešení před domem se usmívá a pózuje pro fotografa .
dvě dívky v šortkách se drží za ruce v bazénu .
čtyři asijské děti sedí na lavičce a mávají do objektivu .
děti jedou na kolech v něčem , co vypadá , že se zdá být vyvořená zdech .
mladý chlapec v šéfkuchařské čepici a zástěře řeže klobásy v kuchyni .
toto je klauna na základní školní škole .
usmívající se loď drží kola svého dřevěného člunu .
žlutý buldozer pracuje , aby pohřli hlínu .
žena v červeném triku jede na bílém koni , který cválí podél stromů .
žena sedí na velmi velké skále a usmívá se na kameru s stromy v pozadí .
tři muži v pestrobarevných kostýmech se v ulicích s parukami a s parukami .
dívka si hraje v malém bazénu .
dvě děti , chlapec ve žlutém triku a dívka v modro-bílých pruhovaných šatech , se houpají .
muž hází rybářskou síť do pece .
muž v šedém triku , modrých džínách a neonově zelené bezpečnostní vestě stojí na železniční trati s bílým autem v pozadí .
dva stavební dělníci leží na kovových lešení .
zde je kapela na pódiu s členy kapely , která má na sobě hliny modré .
rocker se svým trikem zpívá do mikrofonu , zatímco hraje na bubny .
pohled na muže , který si dává své věci z nákupního vozíku , připravený katedrále .
muž s holí je na procházce .
žena v bílém triku pracuje na elmitém stroji .
dívka v masce jede na ramenou muže skrz přeplněný chodník .
dvě dívky , jedna starší a jedna starší v černém a druhá mladší a v bílém , předvádí stejné pózu před dekoracemi .
několik žen předvádí tanec před budovou .
plešatý muž jde po chodníku ve městě a telefonuje .
žena si hraje s loutkou , zatímco malé dítě v kostýmu jde kolem .
skupina lidí sleduje mladého muže , jak hrají na bubny , zatímco hrají na hudební nástroje .
dívka s normální výbavou na kolečkových bruslích .
malé bílé auto je na železniční trati a možná z nich právě odrazil ve vlaku .
dva horolezci zpívají a hrají si na tmavém pódiu .
dívka v baseballové čepici , bílém triku a modrých šortkách stojí na kameni v lese s hor.
dva muži hrají na kytaru před velkým obecenstvem .
mnoho lidí tančí s jejich obybami před velkým domem .
žena a pes prodává své zboží na starých schodech venku .
žena a dva muži , kteří jsou oblečeni v pracovně , mají diskuzi .
skupina mužů v červeno černých bundách čeká na motorkách .
muž v bílém dresu s číslem 3 na něm hraje fotbal .
muž prodává svačinu na sportovní akci .
dva muži z zeleného týmu sráží druhého týmu pro míč v ragby hře .
děti se perou o fotbalový míč .
člověk v modrém je pouze a hází míč na bowlingové dráze .
několik fotbalistů na hřišti v akci .
mladý muž sedí na skateboardu a drží telefon a pózuje na eskalátoru .
žena oblečená v modrém běží maraton .
tato kapela se připravuje na vystoupení před publikem v kostele .
8a s číslem jioio &quot; s nápisem &quot; s texate se pokouší srazit .
dva muži se berou na ledu zametají cestu před rozbitým kamenným obecenstvem , který se dívá .
muži hrají fotbal na bahnitém hřišti .
basketbalista v bílém dřepí , zatímco hráč v červeném se k němu natahuje .
lidé jdou skrz oblouk ve starém městě .
dvě závodní auta , jeden červený a druhý modrý , jedou po straně po dráze , zatímco ho pozoruje několik diváků .
fotbalista v bílém dresu drží fotbalový míč .
velmi mladý chlapec zírá před sebou a kouše do malého předmětu .
žena a dítě jdou po ulici .
hokejová hra je hrána s mnoha lidmi , kteří ho sledují .
tři ženy skáčou na míčky v trávě .
afroamerický chlapec v modrých šortkách , černém a červeném triku a bílých teniskách hraje tenis .
muž a žena v bílých tričkách se objímají .
muž mluví ke rodině drží nějaké zařízení , zatímco se na ni dívá a usmívá se .
velmi mladý chlapec v zeleném triku leží na bílé posteli .
extrý cyklista se zastavil , když se slunce zapadá v pozadí .
žena v teplém oblečení v zasněžené oblasti .
čtyři dívky a žena se učí jak se najít .
muž v černobílých pruhovaném se snaží zastavit koně .
muž dělá obrázek , která je na kterém je žena v modrém triku pročí .
žena s červenými vlasy je krk v modré zamračené vodě .
dva mladí chlapci pózují s štěně na fotku .
čtyři děti trénují karate , zatímco se dva dospělí dívají .
muž si hoví na červeném gauči v hlavníze .
skupina lidí mluví u stolů .
dva koně závodí na koních , jeden v kostkované modré a červené a druhý v oranžovo-hnědém , spolu závodí proti rozmazaným pozadím .
červené auto je před dvěma auty v pozadí .
velký býk cíluje muže , který je v ringu , v rodeu se svým hornatým rodeem , zatímco přichází .
muž bez trika jde k žlutému kajaku .
chlapec na střelnici míří a střílí .
dva týmy chlapců hrají fotbal v písku .
dítě v modrém a dítě v bílém stojí na nízké betonové zdi u potoka .
žena maluje květovanou design na hliněném hrnci .
lidé jdou po rušné ulici v cizí zemi .
správný nadhazovač nadhazuje na nadhazovače .
dva muži , jeden v černobílém a druhý v červeném , hrají plážový volejbal .
muž stojí na lodi a drží nějakou síť .
surfař , který spadl ze svého surfu v oceánu , zatímco se snaží sjet vlnu .
technika připravuje vzorek v laboratoři .
fotbalisté skáčou do vzduchu , aby trefil míč se svými hlavami .
dva chlapci hrají fotbal proti sobě .
starší člověk přechází ulici s deštníkem v rukou .
skupina běžců běží směrem k dvou identickýchodů .
skateboardista jede na betonové zdi , poblíž se snaží padat trik .
lidé hrají hru v bazénu .
muž dává pusu na muže , který je také .
muž podepisuje lekci mladého chlapce , který si čte knihu .
mladý muž v modrém triku sjíždí zábradlí na skateboardu ve městě .
asiat sedí na železniční trati s přepravkami .
britský pán oblečený v plné vojenských uniformách mává na klobouk a v pozadí sedí lidé a dívají se na vodu .
dvě auta jedou po závodní dráze .
muž v černo-bílém dresu drží žluté lyžařské tyče a připravuje se na jídlo .
dva lidé leží a líbají na travnatém trávníku .
velmi malé dítě v džínové kšiltovce jí zelené jablko .
fotbalisté běží k míči .
muž v černé bundě a kostkovaném klobouku a bílých pruhovaných kalhotách hraje na pódiu s elektrickou kytaru , v pozadí je bubeník .
muž skáče přes překážku od býka .
žena v modrém triku a bílých šortkách hraje tenis .
muž hraje na koncertě na koncertě .
muž nese velký kus kovu na ramenou skrz lupy .
žena s kamerou hází frisbee pro svého hnědého psa , aby chytil .
je tam muž a žena pozorují oheň nebo další hořící dřevěný předmět .
dvě dívky si dávají ruce ve fontáně , zatímco kolem chodí lidé .
mokré dítě bez trika pózuje s rukama .
dva muži , jeden v bílém a druhý v modrém , zápasí .
žena v červených bikinách skáče , aby chytil míč , zatímco hraje volejbal na pláži .
oranžová drak kouše blonďatá dívka na nose .
žena , která má na sobě žlutou zástěru , vyndavá víř z velkého hrnce .
dvě děti přechází malý obojek pomocí kamenného mostu .
dvě afroameričanky jedou na mopedu po ulici ve městě , která vypadá jako v dobře osvětleném prostoru .
dva chlapci před strojem s sodovkami .
cyklista v černém jede po špinavé cestě na horském kole .
žena s tetováním fotí obrazu s mobilem .
žena v černém oblečení a bílé helmě jede na kole s rozmazaným stromy v pozadí .
tým cyklistů se sklání , zatímco poblíž diváků a fotí .
čtyři fotbalisté v černém sráží protihráče protihráče v bílém , zatímco je v dešti .
běžec se škrábe na zahradě , zatímco je potřásován dvěma jezdci .
basketbalista v bílém dresu s číslem 55 na koni v černém dresu s číslem 10 .
muž telefonuje venku .
profesionální hráči baseballu během hry se dívají na soupeř .
terénní cyklista se otáčí v lese na podzim .
tři basketbalisté se snaží získat míč a jeden v červeném dresu se snaží získat míč od chlapa v bílém dresu .
chlapec si bere nohu a skáče do vzduchu .
dvě děti v pruhovaných svetrech a černých kalhotách jsou venku u hradu .
muž ve slunečních brýlích jede na koloběžce .
malý chlapec v baseballu drží pálku za hlavou s baseballovým míčem před ním .
šest mužů sedí na poli s dřevěnými bedny .
hnědý pes sbírá dvojčata z kamenného povrchu .
toto je muž oblečený ve žlutém drží koženou hnědého koně .
muž v bílém triku a zástěře krájí ptáka .
hispánka pracuje venku na kuchařském kanálu .
maratonníci závodí na městské ulici s dalšími lidmi , kteří stojí okolo .
asiatka v klobouku jede na kole .
nějaké děti si venku hrají v hlíně , kde jsou dvě stromy .
starší muž hraje videohru .
dívka na břehu pláže s horou v dálce .
